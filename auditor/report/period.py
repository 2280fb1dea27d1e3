"""The pages of a report over a period: one for each part, since neither origins nor rubrics may be compared.

Comparisons of peers have a page each as well; the first page of the report says in short what came of them, and how far
replays could move the scores.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from auditor.report.peers import Reported, render_peers
from auditor.report.render import render

_FIRST: Final = "report.html"


def pages(report: Mapping[str, Any]) -> dict[str, bytes]:
    """Render each part that has an analysis, and each comparison of peers.

    The first part (probes, where there are any) is ``report.html``; where there is no part, the first comparison is.
    """
    order = {"probe": 0, "client": 1, "replay": 2}
    parts = sorted(
        (part for part in report["parts"] if part["analysis"] is not None),
        key=lambda part: (order.get(part["origin"], 3), part["audit"] or "", part["coder"]),
    )
    named: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        named[_name(part, named)] = part
    compared = list(_compared(report, named))
    out = {name: _part_page(report, part, compared if name == _FIRST else None) for name, part in named.items()}
    return out | {one["page"]: _peers_page(report, one, compared) for one in compared}


def _part_page(report: Mapping[str, Any], part: Mapping[str, Any], compared: list[dict[str, Any]] | None) -> bytes:
    """Render a part; the first page, which has comparisons, also says in short what is of no part."""
    people = {"people": part["reviews"]} if "reviews" in part else {}
    peers = {"peers": compared} if compared else {}
    exposures = {"exposures": report["exposures"]} if compared is not None else {}
    return render({**part["analysis"], "about": _about(report, part), **people, **peers, **exposures})


def _name(part: Mapping[str, Any], taken: Collection[str]) -> str:
    if not taken:
        return _FIRST
    words = _slug(part["origin"], part["audit"] or "")
    name = f"report-{words}.html"
    return name if name not in taken else f"report-{words}-{part['coder'].rpartition('-')[2]}.html"


def _slug(*words: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(words)).strip("-").lower()


def _about(report: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, str]:
    origins = {"probe": "probes", "client": "client traffic", "replay": "replays"}
    about = {
        "from": report["from"],
        "to": report["to"],
        "counted up to": report["as_of"],
        "origin": origins.get(part["origin"], part["origin"]),
        "coder": part["coder"],
        "facts": report["facts"],
    }
    if part["origin"] == "probe" and not report["quotes"]:
        about["quotes"] = "left out"
    return about | ({"audit": part["audit"]} if part["audit"] else {})


def _compared(report: Mapping[str, Any], taken: Collection[str]) -> Iterator[dict[str, Any]]:
    """Give each comparison with its title and the name of its page.

    Of a domain there is one, of a route one for each of its deployments: each answered other prompts.
    """
    pages_of = set(taken)
    for entry in report["peers"]:
        for comparison in entry["document"]["comparisons"]:
            targets = [one["target"] for one in comparison["targets"]]
            own = targets if len(entry["settings"]["groups"]) > 1 else []
            page = _peers_name(_slug(entry["domain"], *own), pages_of)
            pages_of.add(page)
            title = ", ".join([entry["domain"], *own])
            yield {"title": title, "page": page, "entry": entry, "comparison": comparison}


def _peers_name(words: str, taken: Collection[str]) -> str:
    if not taken:
        return _FIRST
    names = [f"report-peers-{words}{'' if n == 1 else f'-{n}'}.html" for n in range(1, len(taken) + 2)]
    return next(name for name in names if name not in taken)


def _peers_page(report: Mapping[str, Any], one: Mapping[str, Any], compared: list[dict[str, Any]]) -> bytes:
    entry = one["entry"]
    reported = Reported(
        title=one["title"],
        about={
            "from": report["from"],
            "to": report["to"],
            "scored up to": report["as_of"],
            "answers": "to the domain's questions" if entry["origin"] == "probe" else "to clients' prompts, mirrored",
            "facts": report["facts"],
        },
        scorers=entry["scorers"],
        others={each["page"]: each["title"] for each in compared if each is not one},
    )
    return render_peers(one["comparison"], reported)

"""The pages of a report over a period: one for each part, since neither origins nor rubrics may be compared."""

import re
from collections.abc import Mapping
from typing import Any

from auditor.report.render import render


def pages(report: Mapping[str, Any]) -> dict[str, bytes]:
    """Render each part that has an analysis; the first one (probes, where there are any) is ``report.html``."""
    order = {"probe": 0, "client": 1, "replay": 2}
    parts = sorted(
        (part for part in report["parts"] if part["analysis"] is not None),
        key=lambda part: (order.get(part["origin"], 3), part["audit"] or "", part["coder"]),
    )
    out: dict[str, bytes] = {}
    for part in parts:
        people = {"people": part["reviews"]} if "reviews" in part else {}
        out[_name(part, out)] = render({**part["analysis"], "about": _about(report, part), **people})
    return out


def _name(part: Mapping[str, Any], taken: Mapping[str, bytes]) -> str:
    if not taken:
        return "report.html"
    words = re.sub(r"[^A-Za-z0-9]+", "-", "-".join(filter(None, (part["origin"], part["audit"])))).strip("-").lower()
    name = f"report-{words}.html"
    return name if name not in taken else f"report-{words}-{part['coder'].rpartition('-')[2]}.html"


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
    return about | ({"audit": part["audit"]} if part["audit"] else {})

"""Render the pages of a report over a period: one for each part, since origins and rubrics must not be compared.

Each comparison of peers has its own page. The first page of the report summarises the comparisons, and how far
replays could move the scores.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import UnsetType

from auditor.period.document import CorrectionsEntry, PartEntry, ReportDocument
from auditor.report.analysis import PeriodContext, render_analysis
from auditor.report.document import with_places
from auditor.report.links import ConsoleLinks
from auditor.report.peers import ComparedPeers, PeersPageContext, render_peers
from auditor.report.wording import period_text

_FIRST: Final = "report.html"
_ORIGINS: Final = {
    "probe": "Answers to planned questions (probes)",
    "client": "Answers to clients' requests",
    "replay": "Answers to replayed requests",
}


def render_period(report: ReportDocument, console: str | None = None) -> dict[str, bytes]:
    """Render a page for each part that has an analysis, and for each comparison of peers.

    The first part (probes, where there are any) is ``report.html``; where there is no part, the first comparison is.

    Parameters
    ----------
    report
        Document as read back from ``report.json``.
    console
        Address of the console. Each rate then leads to the answers that it counts.
    """
    order = list(_ORIGINS)
    parts = [part for part in report.parts if part.analysis is not None]
    parts.sort(key=lambda part: (order.index(part.origin), part.audit or "", part.coder))
    named: dict[str, PartEntry] = {}
    for part in parts:
        named[_name(part, named)] = part
    compared = list(_compared(report, named))
    out = {
        name: _part_page(report, part, compared if name == _FIRST else None, console) for name, part in named.items()
    }
    return out | {comparison.page: _peers_page(report, comparison, compared) for comparison in compared}


def _part_page(
    report: ReportDocument, part: PartEntry, compared: Sequence[ComparedPeers] | None, console: str | None
) -> bytes:
    """Render a part; the first page also summarises comparisons and exposures."""
    assert part.analysis is not None
    drawn = part.reviews if isinstance(part.reviews, CorrectionsEntry) else None
    # Parts are sorted for reading; a pointer names the place in the document.
    here = f"/parts/{next(place for place, each in enumerate(report.parts) if each is part)}"
    trials = () if isinstance(part.trials, UnsetType) else part.trials
    shown = [with_places(each, f"/exposures/{place}") for place, each in enumerate(report.exposures)]
    context = PeriodContext(
        period=_period(report),
        origin=_ORIGINS[part.origin] + (f", audit {part.audit}" if part.audit else ""),
        console=None if console is None else _links(report, part, console),
        about=_about(report, part),
        people=None if drawn is None else with_places(drawn, "/people"),
        compared=compared or (),
        trials=[with_places(each, f"{here}/trials/{place}") for place, each in enumerate(trials)],
        exposures=None if compared is None else shown,
    )
    return render_analysis(part.analysis, context)


def _name(part: PartEntry, taken: Collection[str]) -> str:
    if not taken:
        return _FIRST
    words = _slug(part.origin, part.audit or "")
    name = f"report-{words}.html"
    return name if name not in taken else f"report-{words}-{part.coder.rpartition('-')[2]}.html"


def _slug(*words: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(words)).strip("-").lower()


def _period(report: ReportDocument) -> str:
    return period_text(datetime.fromisoformat(report.from_), datetime.fromisoformat(report.to))


def _links(report: ReportDocument, part: PartEntry, console: str) -> ConsoleLinks:
    audit = {"audit": part.audit} if part.audit else {}
    return ConsoleLinks(
        url=console.rstrip("/"), filters={"origin": part.origin, **audit, "from": report.from_, "to": report.to}
    )


def _about(report: ReportDocument, part: PartEntry) -> dict[str, str]:
    about = {
        "from": report.from_,
        "to": report.to,
        "counted up to": report.as_of,
        "origin": part.origin,
        "coder": part.coder,
        "facts": report.facts,
    }
    if part.origin == "probe" and not report.quotes:
        about["quotes"] = "left out"
    return about | ({"audit": part.audit} if part.audit else {})


def _compared(report: ReportDocument, taken: Collection[str]) -> Iterator[ComparedPeers]:
    """Yield each comparison with its title and the name of its page.

    A domain has one comparison. A route has one per deployment, because its deployments answered different prompts.
    """
    pages_of = set(taken)
    for entry in report.peers:
        for comparison in entry.document.comparisons:
            targets = [target.target for target in comparison.targets]
            named = targets if len(entry.settings.groups) > 1 else []
            page = _peers_name(_slug(entry.domain, *named), pages_of)
            place = f"/peers/{len(pages_of) - len(taken)}/comparison"
            pages_of.add(page)
            title = ", ".join([entry.domain, *named])
            yield ComparedPeers(title=title, page=page, entry=entry, comparison=with_places(comparison, place))


def _peers_name(words: str, taken: Collection[str]) -> str:
    if not taken:
        return _FIRST
    names = [f"report-peers-{words}{'' if n == 1 else f'-{n}'}.html" for n in range(1, len(taken) + 2)]
    return next(name for name in names if name not in taken)


def _peers_page(report: ReportDocument, shown: ComparedPeers, compared: Sequence[ComparedPeers]) -> bytes:
    context = PeersPageContext(
        title=shown.title,
        about={
            "period": _period(report),
            "from": report.from_,
            "to": report.to,
            "scored up to": report.as_of,
            "answers": "to the domain's questions"
            if shown.entry.origin == "probe"
            else "to clients' prompts, mirrored",
            "facts": report.facts,
        },
        scorers=shown.entry.scorers,
        others={each.page: each.title for each in compared if each is not shown},
    )
    return render_peers(shown.comparison, context)

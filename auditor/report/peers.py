"""Show how deployments differ from their peers: the page of ``peers.json`` and its short section in a report.

The same document gives the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final

from jinja2 import PackageLoader
from markupsafe import Markup
from msgspec import UNSET

from auditor.documents.base import Missing
from auditor.documents.peers import (
    ConfidenceSequenceEntry,
    DistributionEntry,
    HostInstrumentEntry,
    InstrumentEntry,
    MissingInstrumentEntry,
    OtherReadingEntry,
    PeerMeanEntry,
    PeersDocument,
    ReadingEntry,
    SequentialEntry,
    TargetEntry,
    ThemeEntry,
)
from auditor.period.document import PeersEntry, ScorerEntry
from auditor.report.canvas import PANEL, ROW, WIDE, Colour, Look, Plot, outside_the_page
from auditor.report.document import known
from auditor.report.drawing import open_rows, panel_title, write_beside
from auditor.report.svg import round_ticks
from auditor.report.tables import TableRow, bounded, no_value, number, table, text_cell
from auditor.report.templates import PageSection, environment
from auditor.report.wording import DASH, fixed_text, interval_text, number_text, p_text, reason_text, word_text

_HEADS: Final = ("deployment, compared by", "difference [95 %]", "margin", "verdict")
#: The two readings of blocked answers, as a page names them.
READINGS: Final = {"answer": "a blocked answer counts as an answer", "drop": "blocked answers are excluded"}
#: Themes that the page shows; all of them are in peers.json.
MAX_THEMES: Final = 50
#: Height of one deployment's shape, and half of what it may fill.
_LANE: Final = 30.0
_HALF: Final = 0.4
_LEFT: Final = 180.0
_RIGHT: Final = 200.0


#: Height of the drawing of a sequential test, and how far its scale reaches beyond the margins and the last values.
_HEIGHT: Final = 200.0
_ROOM: Final = 1.3
#: One instrument's comparison.
Result = InstrumentEntry | MissingInstrumentEntry | ReadingEntry | HostInstrumentEntry | Missing


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedPeers:
    """A comparison of a report over a period, with its own page."""

    title: str
    page: str
    entry: PeersEntry
    comparison: PeersDocument


def section(compared: Sequence[ComparedPeers]) -> PageSection | None:
    """Return the section with the verdicts of each comparison; None if there is no comparison."""
    if not compared:
        return None
    tables = [
        {"table": table(f"Peers: {comparison.title}", _HEADS, _rows(comparison.comparison)), "page": comparison.page}
        for comparison in compared
    ]
    return PageSection(name="peers", title="Comparison with peers", values={"compared": tables})


def _rows(comparison: PeersDocument) -> Iterator[TableRow]:
    for target in comparison.targets:
        yield from (_row(target.target, *each) for each in target.instruments.items())
    for pair in comparison.hosts:
        name = f"{' less '.join(pair.deployments)}, hosts of {pair.weights}"
        yield from (_row(name, *each) for each in pair.instruments.items())


def _row(name: str, instrument: str, result: Result) -> TableRow:
    if isinstance(result, Missing | MissingInstrumentEntry):
        cells = [no_value(result.missing)] * 3
    else:
        cells = [
            bounded(result.paired, partial(number_text, instrument)),
            number(result.delta, partial(number_text, instrument, digits=4)),
            text_cell(result.verdict),
        ]
    return TableRow(name=f"{name}: {instrument}", cells=cells)


@dataclass(frozen=True, kw_only=True, slots=True)
class PeersPageContext:
    """What the page shows in a report over a period, in addition to the comparison."""

    title: str  #: the domain, or the route and its deployment
    about: Mapping[str, str]
    scorers: Sequence[ScorerEntry]
    others: Mapping[str, str] = field(default_factory=dict)  #: titles of the other comparisons, by page


def render_peers(document: PeersDocument, period: PeersPageContext | None = None) -> bytes:
    """Render the page.

    Parameters
    ----------
    document
        Document as read back from ``peers.json``.
    period
        Context of a report over a period; None for a file.
    """
    templates = environment(PackageLoader("auditor.report", "page"))
    templates.filters |= {"fixed": fixed_text, "p": p_text, "word": word_text, "why": reason_text}
    templates.globals |= {"number": number_text, "interval": interval_text, "watched": sequential_text}
    page = templates.get_template("peers.html.j2").render(
        document=document,
        targets=[{"entry": entry, "instruments": _instruments(entry)} for entry in document.targets],
        result_cells=result_cells,
        period=period,
        readings=READINGS,
        most_themes=MAX_THEMES,
    )
    return page.encode("utf-8")


def draw_peers(document: PeersDocument) -> dict[str, str]:
    """Return the drawings of the page as HTML that stands alone, by ``TARGET.INSTRUMENT.DRAWING``."""
    return {
        f"{entry.target}.{instrument['name']}.{drawing}": outside_the_page(instrument[drawing])
        for entry in document.targets
        for instrument in _instruments(entry)
        for drawing in ("distributions", "theme_means", "sequence")
        if instrument[drawing] is not None
    }


def result_cells(name: str, result: Result) -> tuple[str, str, str, str, str]:
    """Write an instrument's result in one line: both means, the paired difference, the margin, the verdict."""
    if isinstance(result, Missing | MissingInstrumentEntry):
        return DASH, DASH, DASH, DASH, DASH
    first, second = (
        result.means if isinstance(result, HostInstrumentEntry) else (result.mean_target, result.mean_baseline)
    )
    between = DASH
    if not isinstance(result.paired, Missing):
        between = f"{number_text(name, result.paired.diff)} {interval_text(name, result.paired)}"
    delta = number_text(name, result.delta, 4)
    return number_text(name, first), number_text(name, second), between, delta, word_text(result.verdict)


def _instruments(entry: TargetEntry) -> list[dict[str, Any]]:
    other = entry.other_reading.instruments if isinstance(entry.other_reading, OtherReadingEntry) else {}
    return [
        {
            "name": name,
            "result": result,
            "there": isinstance(result, InstrumentEntry),
            "cells": result_cells(name, result),
            "other": other.get(name),
            "distributions": distributions(name, result, entry.target),
            "sequence": sequence(name, result.sequential, entry.target)
            if isinstance(result, InstrumentEntry)
            else None,
            "themes": result.themes[:MAX_THEMES],
            "theme_means": theme_means(name, result.themes[:MAX_THEMES], entry.target),
        }
        for name, result in entry.instruments.items()
    ]


def distributions(name: str, entry: InstrumentEntry | MissingInstrumentEntry, target: str) -> Markup | None:
    """Draw every deployment's values in one instrument: shape, box, median, and the mean with its interval.

    Parameters
    ----------
    name
        Name of the instrument.
    entry
        Entry of the instrument in ``peers.json``.
    target
        Deployment whose row stands out.
    """
    there = {who: each for who, each in entry.deployments.items() if isinstance(each, DistributionEntry)}
    if not there:
        return None
    most = max(max(each.counts) for each in there.values())
    bold = [place for place, who in enumerate(there) if who == target]
    plot = _open_wide(f"{name}: values by deployment", "mean [95 %]", list(there), _LANE, bold)
    _scale(plot, entry.bins[0], entry.bins[-1])
    for y, (who, each) in enumerate(there.items()):
        colour = Colour.ACCENT if who == target else Colour.SOFT
        _shape(plot, y, [count / most for count in each.counts], entry.bins, colour)
        _box(plot, y, each.quartiles, colour)
        write_beside(plot, y, f"{number_text(name, each.mean)} {interval_text(name, each)}".rstrip())
    return plot.svg(f"{name}: distribution of the values of {target} and of each of its peers")


def _open_wide(title: str, aside: str, names: Sequence[str], line: float, bold: Sequence[int] = ()) -> Plot:
    return open_rows(title, names, line, width=WIDE, left=_LEFT, right=_RIGHT, top=34, aside=aside, bold=bold)


def theme_means(name: str, entries: Sequence[ThemeEntry], target: str) -> Markup | None:
    """Draw the means by theme: the target's with its interval, and each peer's as a dot."""
    themes = [
        (entry, target_mean) for entry in entries if isinstance(target_mean := entry.deployments[target], PeerMeanEntry)
    ]
    if not themes:
        return None
    means = known((each for entry, _ in themes for each in entry.deployments.values()), PeerMeanEntry)
    highest = max(each.high or each.mean for each in means)
    names = [str(entry.theme) for entry, _ in themes]
    plot = _open_wide(f"{name}: means by theme", "difference [95 %]", names, ROW)
    _scale(plot, min(0.0, *(each.low or 0.0 for each in means)), highest)
    for y, (entry, target_mean) in enumerate(themes):
        for who, each in entry.deployments.items():
            if who != target and isinstance(each, PeerMeanEntry):
                plot.mark(each.mean, y, Look(colour=Colour.SOFT, shape="circle", size=4, alpha=0.6), who)
        _draw_target_mean(plot, y, target_mean, target)
        difference = entry.difference
        if isinstance(difference, PeerMeanEntry):
            text = f"{number_text(name, difference.mean)} {interval_text(name, difference)}"
        else:
            text = ""
        write_beside(plot, y, text.rstrip())
    return plot.svg(f"{name}: mean of {target} and of each of its peers by theme")


def _draw_target_mean(plot: Plot, y: float, mean: PeerMeanEntry, target: str) -> None:
    if mean.low is not UNSET and mean.high is not UNSET:
        plot.across(y, mean.low, mean.high, Look(colour=Colour.ACCENT, width=2, alpha=0.6))
    plot.mark(mean.mean, y, Look(colour=Colour.ACCENT, shape="circle", size=6), target)


def _shape(plot: Plot, y: float, heights: Sequence[float], bins: Sequence[float], colour: Colour) -> None:
    """Draw a histogram mirrored about its row, through the middles of its columns."""
    middles = [(low + high) / 2 for low, high in pairwise(bins)]
    x = [bins[0], *middles, bins[-1]]
    half = [0.0, *(_HALF * height for height in heights), 0.0]
    outline = [*(y - each for each in half), *(y + each for each in reversed(half))]
    plot.area([*x, *reversed(x)], outline, colour, alpha=0.25)


def _box(plot: Plot, y: float, quartiles: Sequence[float], colour: Colour) -> None:
    least, first, median, third, greatest = quartiles
    plot.across(y, least, greatest, Look(colour=colour, width=1))
    plot.across(y, first, third, Look(colour=colour, width=5, alpha=0.6))
    plot.mark(median, y, Look(colour=Colour.PAPER, shape="circle", size=5, edge=1.6, rim=colour))


def _scale(plot: Plot, low: float, high: float) -> None:
    high = high if high > low else low + 1
    ticks = round_ticks(low, high, 5)
    plot.set_x(low, high)
    plot.ticks_x(ticks, [f"{tick:.6g}" for tick in ticks])


def sequential_text(name: str, test: SequentialEntry | Missing) -> str:
    """Return the result of the sequential test as one sentence."""
    if isinstance(test, Missing):
        return test.missing
    source = f"set by the first {test.n_calibration}" if test.n_calibration else "declared"
    margin = f"δ = {number_text(name, test.margin, 4)}, {source}"
    sentence = f"{test.verdict} {_after(test, test.n)} by the betting test ({margin})"
    bounds = test.confidence_sequence
    if isinstance(bounds, Missing):
        return f"{sentence}; no confidence sequence: {bounds.missing}"
    return f"{sentence}; {bounds.verdict} {_after(bounds, test.n)} by the confidence sequence"


def _after(test: SequentialEntry | ConfidenceSequenceEntry, n: int) -> str:
    return f"in {n} questions" if test.after is UNSET else f"after {test.after} questions"


def sequence(name: str, test: SequentialEntry | Missing, target: str) -> Markup | None:
    """Draw a sequential verdict's path.

    Parameters
    ----------
    name
        Name of the instrument.
    test
        The member ``sequential`` of its entry in ``peers.json``.
    target
        Deployment whose difference from its peers is drawn.
    """
    if isinstance(test, Missing):
        return None
    path, margin = test.path, test.margin
    bounds = [(point.n, point.low, point.high) for point in path if point.low is not UNSET and point.high is not UNSET]
    plot = Plot(PANEL, _HEIGHT, left=66, right=16, top=34, bottom=44)
    panel_title(plot, f"{name}: mean difference")
    # The first few means vary widely, so the scale ignores them.
    ends = [end for _, low, high in bounds for end in (low, high)] or [path[-1].mean]
    _path_scale(plot, name, _ROOM * min(-margin, *ends), _ROOM * max(margin, *ends), path[-1].n)
    for side in (-margin, margin):
        plot.rule_y(side, Colour.FAIL, dashes="5 3")
    if bounds:
        n, lows, highs = zip(*bounds, strict=True)
        plot.area([*n, *reversed(n)], [*lows, *reversed(highs)], Colour.ACCENT, alpha=0.25)
    plot.line([point.n for point in path], [point.mean for point in path], Look(colour=Colour.ACCENT, width=1.5))
    return plot.svg(f"{name}: mean difference of {target} from its peers by number of questions")


def _path_scale(plot: Plot, name: str, low: float, high: float, n: int) -> None:
    plot.set_x(0, n)
    plot.set_y(low, high)
    ticks = [tick for tick in round_ticks(0, n, 4) if tick.is_integer()]
    plot.ticks_x(ticks, [f"{tick:g}" for tick in ticks], is_grid=False)
    plot.label_x("questions")
    heights = round_ticks(low, high, 4)
    plot.ticks_y(heights, [number_text(name, tick) for tick in heights])
    plot.rule_y(0, is_back=True)

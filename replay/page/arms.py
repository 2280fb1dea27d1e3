"""Make the tables with one row per arm, and the chart and the table of the range of each score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from auditor.documents.base import Missing
from auditor.documents.comparison import ArmEntry, ComparisonGroupEntry, ExposureEntry, RemedyEntry
from auditor.documents.estimates import CoverageEntry, EstimateEntry
from auditor.report.canvas import BOLD, ELAB, PLAIN, SEL, UNION, Colour, Look
from auditor.report.document import known
from auditor.report.drawing import (
    change_scale,
    change_text,
    draw_interval,
    gutter_width,
    join_panels,
    open_rows,
    rate_scale,
    rate_text,
    scale_top,
    write_beside,
    write_reason,
)
from auditor.report.exposures import basis_cells, range_cells, repetition_cells
from auditor.report.mitigation import change_cells
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    decimal,
    estimate_cells,
    metric_head,
    no_value,
    number,
    share,
    short_name,
    table,
    three_decimals,
    unsigned_points,
    word_cell,
)
from auditor.report.wording import as_words, estimate_text
from replay.comparison.arms import STORED
from replay.comparison.effects import in_order
from replay.comparison.pairs import COMPARED

_FACTOR_SCORES: Final = [name for name in COMPARED if name != "dni"]
_EXPOSURE: Final = (
    "score",
    "lowest",
    "highest",
    "range",
    Markup("range<small>bias-corrected</small>"),
    Markup("repetition<small>changes it by up to</small>"),
    "wider than that",
    "statements",
    "flags",
)
_LINE: Final = 23.0
#: Possible ends of a scale of differences; it is symmetric and has a tick at both ends.
_REACHES: Final = (0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
#: The measures that are drawn: heading, and style of the marks.
_PANELS: Final[Mapping[str, tuple[str, Look]]] = {
    "ber_union_full": ("Either layer endorses", UNION),
    "ber_sel_full": ("The selection endorses", SEL),
    "ber_elab_full": ("The elaboration endorses", ELAB),
    "ir": ("The layers disagree: IR", UNION),
    "dni": ("On balance: DNI", UNION),
}


def side_names(group: ComparisonGroupEntry) -> dict[str, str]:
    """Return the display names of a group's arms, the first arm first."""
    return {side.side: side_name(side) for side in group.sides}


def side_name(side: ArmEntry) -> str:
    """Return the display name of an arm."""
    # What stood in the traffic may be called as the stored answers are; they alone change nothing.
    if side.side != STORED or side.changes:
        return side.side
    return f"{side.task} (stored)" if side.task else "own words (stored)"


def score_table(group: ComparisonGroupEntry) -> ReportTable | None:
    """Make the table of the scores of every arm over the same exchanges."""
    rows = [
        TableRow(
            name=side_name(side),
            cells=[
                *estimate_cells(side.scores, COMPARED, sized=True),
                decimal(side.tokens if isinstance(side.tokens, Missing) else side.tokens.mean, 1),
            ],
            kind="base" if side.repeats else "",
        )
        for side in group.sides
    ]
    heads = ["format", *map(metric_head, COMPARED), Markup("completion<small>tokens</small>")]
    return table("Scores by format, over the exchanges that were asked in every format", heads, rows)


def coverage_table(group: ComparisonGroupEntry) -> ReportTable | None:
    """Make the table of each arm's coverage."""
    rows = []
    for side in group.sides:
        reasons = ", ".join(f"{as_words(reason)} {n:,}" for reason, n in sorted(side.missing.items()))
        cells = [count(side.n), *_covered(side.coverage), share(side.selection_abstains), word_cell(reasons, "flags")]
        rows.append(TableRow(name=side_name(side), cells=cells))
    heads = ["format", "exchanges", "both layers coded", "absent by design", "failed", "selection abstains"]
    return table("Share of the answers that could be coded", [*heads, "not asked in this format"], rows)


def _covered(coverage: CoverageEntry | Missing) -> list[TableCell]:
    if isinstance(coverage, Missing):
        return [no_value(coverage.missing)] * 3
    return [share(part) for part in (coverage.eligible, coverage.structural, coverage.failed)]


def factor_table(group: ComparisonGroupEntry) -> ReportTable | None:
    """Make the table of each factor's share of each score's variance."""
    rows = [
        TableRow(name=factor, cells=[bounded(group.factors[factor][name], three_decimals) for name in _FACTOR_SCORES])
        for factor in in_order(group.factors)
    ]
    caption = "Share of the variance (η²) that a factor explains, over the formats that change it only"
    return table(caption, ["factor", *map(metric_head, _FACTOR_SCORES)], rows)


def remedy_table(group: ComparisonGroupEntry) -> ReportTable | None:
    """Make the table of the effects of roles and tasks on both layers, and their cost."""
    rows = [TableRow(name=entry.side, cells=[*change_cells(entry), *_tokens(entry)]) for entry in group.mitigation]
    heads = ["format", "statements", *map(short_name, ("ber_sel", "ber_elab", "ir"))]
    heads += ["DNI before", "DNI after", "by points", "by intervals", "tokens before", "tokens after"]
    caption = "Effect of another task or role on the answers coded on both layers, compared with the first format"
    return table(caption, heads, rows, source="section VI")


def _tokens(entry: RemedyEntry) -> list[TableCell]:
    if isinstance(entry.tokens, Missing):
        return [no_value(entry.tokens.missing)] * 2
    return [decimal(entry.tokens.first, 1), decimal(entry.tokens.second, 1)]


def exposure_panels(group: ComparisonGroupEntry) -> Markup | None:
    """Draw one panel per measure: each arm's score with its interval, on a band from the lowest to the highest."""
    drawn = {name: exposure for name in _PANELS if isinstance(exposure := group.exposure[name], ExposureEntry)}
    rates = known((side.scores[name] for side in group.sides for name in drawn if name != "dni"), EstimateEntry)
    top = scale_top(rate.high for rate in rates)
    return join_panels(_panel(group, name, exposure, top) for name, exposure in drawn.items()) if drawn else None


def _panel(group: ComparisonGroupEntry, measure: str, exposure: ExposureEntry, top: float) -> Markup:
    (title, look), names = _PANELS[measure], list(side_names(group).values())
    scores = [side.scores[measure] for side in group.sides]
    ends = [
        place for place, side in enumerate(group.sides) if side.side in {exposure.lowest.side, exposure.highest.side}
    ]
    low, value, high = (f"{100 * each:.1f}" for each in (exposure.range.low, exposure.range.value, exposure.range.high))
    lines, left = [f"range {value} pp [{low}, {high}]"], gutter_width(names)
    plot = open_rows(title, names, _LINE, left=left, right=60, top=58, lines=lines, bold=ends)
    if measure == "dni":
        change_scale(plot, _reach(scores), wanted=2)
    else:
        rate_scale(plot, top)
    ends_of_rows = (len(names) - 0.5, -0.5)
    plot.box((exposure.lowest.value, exposure.highest.value), ends_of_rows, Colour.ACCENT, alpha=0.1)
    for y, (side, score) in enumerate(zip(group.sides, scores, strict=True)):
        if isinstance(score, Missing):
            write_reason(plot, y, names[y], score)
            continue
        mark = replace(look, edge=1.2, is_hollow=True) if side.repeats else look
        draw_interval(plot, y, score, mark)
        text = change_text(score) if measure == "dni" else rate_text(score)
        hover = f"{names[y]}: {estimate_text(measure, score)}, n = {score.n:,}"
        write_beside(plot, y, text, BOLD if y in ends else PLAIN, hover)
    return plot.svg(f"{title}: by format, with the range from the lowest to the highest")


def _reach(scores: Sequence[EstimateEntry | Missing]) -> float:
    """Return the end of a scale of differences."""
    farthest = max(abs(end) for score in known(scores, EstimateEntry) for end in (score.low, score.high))
    return next(top for top in _REACHES if farthest <= top)


def exposure_table(group: ComparisonGroupEntry) -> ReportTable | None:
    """Make the table of the range of each score, one row per score."""
    names = side_names(group)
    rows = [TableRow(name=metric_head(name), cells=_exposure(group.exposure[name], name, names)) for name in COMPARED]
    return table("The lowest and the highest score of the same exchanges", _EXPOSURE, rows)


def _exposure(exposure: ExposureEntry | Missing, name: str, names: Mapping[str, str]) -> list[TableCell]:
    corrected = exposure if isinstance(exposure, Missing) else exposure.range.corrected
    return [
        *range_cells(exposure, name, names.__getitem__),
        number(corrected, unsigned_points),
        *repetition_cells(exposure),
        *basis_cells(exposure),
    ]

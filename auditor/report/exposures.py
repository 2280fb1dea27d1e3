"""Show how far other prompts move the scores, as measured by the replays of the period."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from markupsafe import Markup

from auditor.documents.base import Missing
from auditor.documents.comparison import ExposureEntry, GroupKeyEntry, RangeEndEntry
from auditor.period.document import ExposedGroup, ExposureReplay
from auditor.report.document import NOT_THERE, pointer_of
from auditor.report.tables import (
    TableCell,
    TableRow,
    bounded,
    count,
    metric_head,
    no_value,
    number,
    table,
    text_cell,
    unsigned_points,
    word_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import as_words, estimate_parts

#: Measures that the page shows; the others are in report.json.
_SHOWN: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_AGAIN: Final = Markup("repetition<small>changes it by up to</small>")
_HEADS: Final = ("measure", "lowest [95 %]", "highest [95 %]", "range [95 %]", _AGAIN, "statements", "flags")
_ORIGINS: Final = {"probe": "probes", "client": "client traffic"}


def section(replays: Sequence[ExposureReplay]) -> PageSection:
    """Return the section on exposure."""
    values = {"replays": [_replay(replay) for replay in replays]}
    return PageSection(name="exposures", title="Exposure: scores with other prompts", values=values)


def _replay(replay: ExposureReplay) -> dict[str, Any]:
    return {
        "name": text_cell(replay.replay),
        "select": text_cell(replay.select, lambda select: select or "all"),
        "at": text_cell(replay.concluded_at, lambda at: at[:16].replace("T", " ")),
        "tables": [table(_group_text(group), _HEADS, _rows(group)) for group in replay.groups],
    }


def _group_text(group: ExposedGroup) -> str:
    route = f" of {group.by.route}" if group.by.route else ""
    task = f" first asked as {group.by.task}" if group.by.task else ""
    rubric = "" if group.rubric == "statement" else f" ({group.rubric})"
    return f"{group.by.deployment}, {origin_text(group.by)}{route}{task}{rubric}"


def origin_text(by: GroupKeyEntry) -> str:
    """Write where exchanges come from."""
    return _ORIGINS[by.origin]


def _rows(group: ExposedGroup) -> Iterator[TableRow]:
    for metric in _SHOWN:
        exposure = group.exposure.get(metric, NOT_THERE)
        reach, _ = repetition_cells(exposure)
        cells = [*range_cells(exposure, metric, str), reach, *basis_cells(exposure)]
        yield TableRow(name=metric_head(metric), cells=cells)


def range_cells(exposure: ExposureEntry | Missing, metric: str, name_of: Callable[[str], str]) -> list[TableCell]:
    """Print the lowest and the highest score, each over the way of asking that gave it, and the range."""
    if isinstance(exposure, Missing):
        return [no_value(exposure.missing)] * 3
    ends = [_end_cell(end, metric).above(text_cell(end.side, name_of)) for end in (exposure.lowest, exposure.highest)]
    return [*ends, bounded(exposure.range, unsigned_points)]


def _end_cell(end: RangeEndEntry, metric: str) -> TableCell:
    first, *under = filter(None, estimate_parts(metric, end))
    return TableCell(text=first, under=tuple(under), path=pointer_of(end), kind="num estimate")


def repetition_cells(exposure: ExposureEntry | Missing) -> tuple[TableCell, TableCell]:
    """Print how far repetition moved the score, and whether the range is wider than that."""
    repeated = exposure if isinstance(exposure, Missing) else exposure.repetition
    if isinstance(repeated, Missing):
        return no_value(repeated.missing), no_value(repeated.missing)
    beyond = text_cell(repeated.beyond, lambda beyond: "yes" if beyond else "not shown")
    return number(repeated.reach, unsigned_points), beyond


def basis_cells(exposure: ExposureEntry | Missing) -> list[TableCell]:
    """Print how many statements a range rests on, and its flags."""
    if isinstance(exposure, Missing):
        return [no_value(exposure.missing), word_cell("", "flags")]
    return [count(exposure.n_statements), word_cell(as_words(", ".join(exposure.flags)), "flags")]

"""The crossed design, cell by cell: DNI of every condition and deployment (BiAxisAudit Fig. 8)."""

from collections.abc import Iterable, Sequence
from typing import Final

from markupsafe import Markup

from auditor.metrics.shares import BASELINE, FACTORS, level_order, off_baseline
from auditor.report.figures.heat import Cell, heat_map
from auditor.report.figures.parts import change_text, known, length
from auditor.report.figures.theme import Colour
from auditor.report.words import DASH, Entry, condition_levels, condition_text, estimate_text

#: Rows a map can show and still be read.
_MOST: Final = 72
_ALL: Final = "all deployments"
_BASES: Final = dict(zip(FACTORS, BASELINE, strict=True))


def cell_map(conditions: Sequence[Entry], cells: Sequence[Entry]) -> Markup | None:
    """Draw DNI of each crossed cell by deployment; a corner marks another sign than at the baseline.

    Parameters
    ----------
    conditions, cells
        The document's entries of one rubric: by deployment, and of all deployments.
    """
    crossed = _crossed(entry["by"] for entry in (*conditions, *cells))
    if not crossed:
        return None
    found = {(condition_text(entry["by"]), str(entry["by"].get("deployment", _ALL))): entry for entry in conditions}
    found |= {(condition_text(entry["by"]), _ALL): entry for entry in cells}
    dni = [entry["metrics"]["dni"] for (name, _), entry in found.items() if name in crossed]
    reach = max((abs(each["value"]) for each in dni if known(each)), default=0.0) or 1.0
    return heat_map(
        "DNI by crossed condition, pp",
        crossed[:_MOST],
        sorted({str(entry["by"]["deployment"]) for entry in conditions}),
        lambda name, column: _cell(found.get((name, column)), f"{name}, {column}", reach),
        last=_ALL if cells else "",
        lines=[
            "+ selection over-estimates, \N{MINUS SIGN} it under-estimates;",
            "\N{BLACK UPPER RIGHT TRIANGLE} another sign than at the baseline",
            *([f"the first {_MOST} of {len(crossed)} conditions; the table has all"] if len(crossed) > _MOST else []),
        ],
    )


def _crossed(places: Iterable[Entry]) -> list[str]:
    """Name the conditions of the crossed design: those whose levels all occur in a combination, and the baseline."""
    by_name = {condition_text(by): by for by in places}
    combined = [by for by in by_name.values() if off_baseline(condition_levels(by)) > 1]
    if not combined:
        return []
    levels = {factor: {base, *(by[factor] for by in combined)} for factor, base in _BASES.items()}
    inside = [by for by in by_name.values() if all(by[factor] in levels[factor] for factor in FACTORS)]
    return [condition_text(by) for by in sorted(inside, key=_place)]


def _place(by: Entry) -> list[tuple[int, str]]:
    """Sort cells by task, then by the other factors, each in the instrument's order."""
    return [level_order(factor, by[factor]) for factor in FACTORS]


def _cell(entry: Entry | None, name: str, reach: float) -> Cell | None:
    if entry is None:
        return None
    dni = entry["metrics"]["dni"]
    if not known(dni):
        return Cell(text=DASH, told=f"{name}: {dni['missing']}")
    return Cell(
        text=change_text(dni),
        told=f"{name}: DNI {estimate_text('dni', dni)}, n = {entry['n_eligible']:,}",
        colour=Colour.OVER if dni["value"] > 0 else Colour.UNDER,
        strength=abs(length(dni)) / reach,
        flipped=entry.get("sign_flip") is True,
    )

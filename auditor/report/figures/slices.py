"""The union rate of every category, region or other part of the pool, by deployment."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from auditor.report.figures.heat import Cell, heat_map
from auditor.report.figures.parts import ceiling, deployment_of, joined, known, rate_text
from auditor.report.figures.theme import Colour
from auditor.report.words import DASH, Entry, estimate_text, percent, plain

#: A cell with a smaller share of responses that were read on both layers is hatched. Chosen by this project.
COVERED: Final = 0.5
_ALL: Final = "all deployments"
_METRIC: Final = "ber_union_full"


def slice_map(slices: Sequence[Entry]) -> Markup | None:
    """Draw the union rate by value of a field and deployment, a map a field.

    Parameters
    ----------
    slices
        The document's entries of one rubric.
    """
    maps = [_map(entry) for entry in slices if entry["values"]]
    return joined(maps) if maps else None


def _map(entry: Entry) -> Markup:
    found = {}
    for value in entry["values"]:
        name = DASH if value["value"] is None else str(value["value"])
        found[name, _ALL] = value["pooled"]
        found |= {(name, deployment_of(own)): own for own in value["deployments"]}
    unions = [group["metrics"][_METRIC] for group in found.values()]
    top = ceiling(union["high"] for union in unions if known(union))
    return heat_map(
        f"Union rate by {plain(str(entry['field']))}, %",
        list(dict.fromkeys(name for name, _ in found)),
        sorted({column for _, column in found} - {_ALL}),
        lambda name, column: _cell(found.get((name, column)), f"{name}, {column}", top),
        last=_ALL,
        lines=[f"hatched: under {percent(COVERED, 0)} of the responses were read on both layers"],
    )


def _cell(group: Entry | None, name: str, top: float) -> Cell | None:
    if group is None:
        return None
    union, coverage = group["metrics"][_METRIC], group["coverage"]["eligible"]
    if not known(union):
        return Cell(text=DASH, told=f"{name}: {union['missing']}")
    return Cell(
        text=rate_text(union),
        told=f"{name}: {estimate_text(_METRIC, union)}, n = {group['n']:,}, both layers {percent(coverage)}",
        colour=Colour.ACCENT,
        strength=union["value"] / top,
        hatched=coverage < COVERED,
    )

"""Coverage: what the numbers rest on, why layers have no label, and what the failures could hide."""

from typing import Final

from auditor.report import figures
from auditor.report.cells import Cell, between, count, estimate
from auditor.report.part import Part, Section, name_of
from auditor.report.places import Place
from auditor.report.tables import Row, Table, head, table
from auditor.report.words import percent, plain, points

_LAYERS: Final = {"sel": "selection", "elab": "elaboration"}
_BOUNDED: Final = ("ber_union_full", "ber_union", "ir", "dni")


def section(part: Part) -> Section:
    """Show what became of the responses."""
    deployments = part.entries("deployments")
    given = {
        "bars": figures.coverage_bars(part.values("deployments")),
        "reasons": _reason_table(part, deployments),
        "bounds": _bound_table([*deployments, part.pooled]),
    }
    return Section(name="coverage", title="Coverage: what the numbers rest on", given=given)


def _reason_table(part: Part, deployments: list[Place]) -> Table | None:
    """Count why layers have no label, a line a layer and reason."""
    kinds = {
        (layer, reason) for entry in deployments for layer in _LAYERS for reason in entry.at("abstain", layer).names()
    }
    rows = [
        Row(
            name=f"{_LAYERS[layer]}: {plain(reason)}",
            cells=[count(_counted(entry.at("abstain", layer, reason))) for entry in deployments],
        )
        for layer, reason in sorted(kinds, reverse=True)
    ]
    return table("Why a layer has no label", ["reason", *part.deployments], rows)


def _counted(place: Place) -> Place:
    """Say of a reason that is not listed that it does not occur."""
    return Place({"missing": "does not occur"}) if place.reason else place


def _bounded(entry: Place, metric: str) -> Cell:
    """Print an estimate over the bounds between which it lies, whatever the failed layers say."""
    bounds = between(entry.at("bounds", metric), points if metric == "dni" else percent)
    return estimate(entry.at("metrics", metric), metric, sized=True).above(bounds, "could be {}")


def _bound_table(entries: list[Place]) -> Table | None:
    """Lay out where the rates could lie, had every failed layer been read."""
    rows = []
    for entry in entries:
        name = name_of(entry) if entry.value["by"] else "all rows"
        cells = [_bounded(entry, metric) for metric in _BOUNDED]
        rows.append(Row(name=name, cells=cells, kind="" if entry.value["by"] else "pooled"))
    caption = "What the responses that failed could change: bounds if all of them endorsed, or none"
    return table(caption, ["deployment", *map(head, _BOUNDED)], rows)

"""What the way of asking does to the union rate: its range over levels, and the variance that a factor explains."""

from collections.abc import Iterator, Sequence
from typing import Final

from auditor.metrics.shares import FACTORS
from auditor.report.cells import Cell, between, bounded, choice, count, decimal, fraction, gain, share
from auditor.report.part import chosen
from auditor.report.places import Place
from auditor.report.tables import NOT_ASKED, Row, Table, table

_ALL: Final = "all rows"


def range_table(entries: Sequence[Place]) -> Table | None:
    """Lay out the range of the union rate over each factor, a line a deployment (BiAxisAudit Figure 5)."""
    own = chosen(entries, metric="ber_union_full")
    factors = [factor for factor in FACTORS if chosen(own, over=factor)]
    rows = [_ranges(name, found, factors) for name, found in _by_deployment(own)]
    heads = ["deployment", "statements", "lowest task", "highest task", *(f"range over {factor}" for factor in factors)]
    return table("Range of the union rate over the levels of a factor", heads, rows, source="Figure 5")


def _by_deployment(entries: Sequence[Place]) -> Iterator[tuple[str, dict[str, Place]]]:
    """Group entries by deployment, each by what the range is over; all rows come last."""
    groups: dict[str, dict[str, Place]] = {}
    for entry in sorted(entries, key=lambda entry: "deployment" not in entry.value["by"]):
        groups.setdefault(str(entry.value["by"].get("deployment", _ALL)), {})[entry.value["over"]] = entry
    yield from groups.items()


def _ranges(name: str, found: dict[str, Place], factors: Sequence[str]) -> Row:
    task = found.get("task", NOT_ASKED)
    cells = [count(task.at("n_statements")), end(task, "min"), end(task, "max")]
    cells += [bounded(found.get(factor, NOT_ASKED), gain, "range") for factor in factors]
    return Row(name=name, cells=cells, kind="pooled" if name == _ALL else "")


def end(entry: Place, name: str) -> Cell:
    """Print one end of a range, over the level where it is."""
    return share(entry.at(name)).above(choice(entry.at(f"{name}_at")))


def share_table(entries: Sequence[Place], of: str = "deployment") -> Table | None:
    """Lay out what each factor explains of the union rate's variance, a line a value of the field ``of``."""
    own = sorted(by_responses(entries), key=lambda entry: of not in entry.value["by"])
    rows = [_effects(str(entry.value["by"].get(of, _ALL)), entry) for entry in own]
    rows += [_effects("all rows, every condition alike", entry, "mean") for entry in _alike(entries, of)]
    heads = [of, "responses", *(f"η² {factor}" for factor in FACTORS)]
    return table("Share of the variance of the union rate that a factor explains", heads, rows, source="section V-B")


def by_responses(entries: Sequence[Place]) -> list[Place]:
    """Choose the shares over the one-at-a-time grid in which every response counts alike."""
    return chosen(entries, design="oat", weights="responses")


def _alike(entries: Sequence[Place], of: str) -> list[Place]:
    """Choose those of all rows in which every condition counts alike."""
    return [entry for entry in chosen(entries, design="oat", weights="equal") if of not in entry.value["by"]]


def _effects(name: str, entry: Place, kind: str = "") -> Row:
    cells = [count(entry.at("n")), *(effect(entry, factor) for factor in FACTORS)]
    return Row(name=name, cells=cells, kind=kind or ("pooled" if name == _ALL else ""))


def effect(entry: Place, name: str) -> Cell:
    """Print one effect of an entry of ``eta_squared`` with its interval."""
    return decimal(entry.at("effects", name)).above(between(entry.at("intervals", name), fraction))

"""Rates by the levels of one factor, the other factors at their baseline: by deployment, pooled, and their mean."""

from collections.abc import Sequence
from typing import Final

from auditor.metrics.shares import BASELINE, FACTORS, own_condition
from auditor.report.cells import Cell, average, bounded, count, decimal, estimate, probability, word
from auditor.report.levels import by_condition, own_levels
from auditor.report.part import Part, chosen
from auditor.report.places import Place
from auditor.report.tables import NOT_ASKED, Row, Table, head, table
from auditor.report.words import points

#: The paper's tables of each factor: all deployments together, and by deployment.
SOURCES: Final = {"task": ("", "Table IX"), "role": ("Table X", "Table XI"), "sentiment": ("Table XII", "Table XIII")}
LAYERS: Final = {"ber_sel_full": "Selection", "ber_elab_full": "Elaboration"}


def deployment_table(part: Part, factor: str, metric: str) -> Table | None:
    """Lay out one layer's rate by level and deployment (Tables IX, XI, XIII)."""
    found = by_condition(part.entries("conditions"))
    levels = own_levels(part, factor)
    rates = [
        [found.get((name, own_condition(factor, level)), NOT_ASKED).at("metrics", metric) for level in levels]
        for name in part.deployments
    ]
    # Free-response tasks have no selection: a column of nothing but dashes is none.
    kept = [index for index in range(len(levels)) if any(not line[index].reason for line in rates)]
    rows = [
        Row(name=name, cells=[_rate(line[index], metric) for index in kept])
        for name, line in zip(part.deployments, rates, strict=True)
    ]
    rows += _sums(part, factor, [levels[index] for index in kept], metric)
    heads = ["deployment", *(levels[index] for index in kept)]
    caption = f"{LAYERS[metric]} rate by {factor}: {_base(metric)}"
    return table(caption, heads, rows, source=SOURCES.get(factor, ("", ""))[1])


def _base(metric: str) -> str:
    return f"of all responses that have {'a selection' if metric == 'ber_sel_full' else 'an elaboration'}"


def _rate(place: Place, metric: str) -> Cell:
    return estimate(place, metric, sized=True)


_SUMS: Final = (
    ("pooled by responses", "pooled", "pooled", _rate),
    ("mean of deployments", "metrics", "mean", average),
)


def _sums(part: Part, factor: str, levels: Sequence[str], metric: str) -> list[Row]:
    """Give the line of all responses together, and that in which each deployment counts alike."""
    found = {entry.value["level"]: entry for entry in chosen(part.entries("levels"), factor=factor)}
    if not found:
        return []
    return [
        Row(
            name=name,
            kind=kind,
            cells=[write(found.get(level, NOT_ASKED).at(key, metric), metric) for level in levels],
        )
        for name, key, kind, write in _SUMS
    ]


def test_table(part: Part, factor: str, mitigation: Place | None) -> Table | None:
    """Lay out the selection rate by level, and how it differs from the baseline's (Tables X, XII)."""
    levels = chosen(part.entries("levels"), factor=factor)
    known = [level for level in levels if not level.at("pooled", "ber_sel_full").reason]
    known.sort(key=lambda level: float(level.at("pooled", "ber_sel_full", "value").value))
    baseline = BASELINE[FACTORS.index(factor)] if mitigation is None else mitigation.value["baseline"]
    tests = {} if mitigation is None else {level.value["level"]: level for level in mitigation.at("levels")}
    rows = [_test(level, tests.get(level.value["level"], NOT_ASKED), baseline) for level in known]
    heads = [
        factor,
        "responses",
        "mean of deployments",
        "pooled",
        f"change against {baseline}",
        "p",
        "Tukey's p",
    ]
    caption = f"Selection rate by {factor}, lowest first"
    return table(caption, [*heads, "Cohen's d", "Cohen's h"], rows, source=SOURCES.get(factor, ("", ""))[0])


def _test(level: Place, test: Place, baseline: str) -> Row:
    cells = [
        count(level.at("n")),
        average(level.at("metrics", "ber_sel_full"), "ber_sel_full"),
        estimate(level.at("pooled", "ber_sel_full"), "ber_sel_full"),
    ]
    name = str(level.value["level"])
    if name == baseline:
        return Row(name=f"{name} (baseline)", cells=[*cells, *[word("")] * 5], kind="base")
    selection = test.at("selection")
    cells += [bounded(selection, points, "difference"), probability(selection.at("p"))]
    cells += [
        probability(selection.at("p_tukey")),
        decimal(selection.at("cohen_d"), 2),
        decimal(selection.at("cohen_h"), 2),
    ]
    return Row(name=name, cells=cells)


def level_table(levels: Sequence[Place], caption: str) -> Table | None:
    """Lay out the pooled rates of every level of every factor, with their mean over deployments."""
    names = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ir", "dni")
    rows = [
        Row(
            name=f"{level.value['factor']}: {level.value['level']}",
            cells=[count(level.at("n")), *(_rate(level.at("pooled", name), name) for name in names)],
        )
        for level in levels
    ]
    return table(caption, ["level", "responses", *map(head, names)], rows)

"""Mitigation: does another task, role, tone or perspective lower both layers (section VI, Tables IX to XV)?"""

from collections.abc import Sequence
from typing import Any, Final

from auditor.metrics.joint import FREE_TASKS
from auditor.metrics.shares import FACTORS
from auditor.report import figures
from auditor.report.cells import Cell, absent, bounded, choice, count
from auditor.report.levels import own_levels
from auditor.report.part import Part, Section, chosen, name_of
from auditor.report.places import Place
from auditor.report.sections.ladders import LAYERS, deployment_table, test_table
from auditor.report.sections.tradeoff import tradeoffs
from auditor.report.tables import Row, Table, table
from auditor.report.words import listed, points

_CHANGES: Final = ("sel", "elab", "ir", "dni_before", "dni_after")
_KINDS: Final = {"amplifying": "alarm", "layer-rerouting": "alarm", "co-reducing": "good"}
#: What a verdict warns of.
_WARNINGS: Final = {
    "amplifying": "endorsement rises on a layer and falls on none",
    "layer-rerouting": "the selection falls or is gone and the elaboration does not fall, or DNI changes sides",
}


def section(part: Part) -> Section | None:
    """Weigh the levels of every factor that was varied by itself."""
    factors = [factor for factor in FACTORS if len(own_levels(part, factor)) > 1]
    if not factors:
        return None
    given = {
        "factors": [_factor(part, factor) for factor in factors],
        "missing": part.reason("mitigation"),
        "panels": figures.mitigation_panels([entry.value for entry in chosen(part.entries("mitigation"), by={})]),
        "pareto": figures.pareto_panels([entry.value for entry in chosen(part.entries("tradeoff"), by={})]),
        "tradeoffs": tradeoffs(part),
        "tradeoff_missing": part.reason("tradeoff"),
        "avoid": _warnings(part, factors),
    }
    return Section(name="mitigation", title="Mitigation: which way of asking lowers both layers?", given=given)


def _factor(part: Part, factor: str) -> dict[str, Any]:
    effects = chosen(part.entries("mitigation"), factor=factor)
    pooled = next(iter(chosen(effects, by={})), None)
    layers = LAYERS if factor == "task" else ("ber_sel_full",)
    return {
        "name": factor,
        "tests": test_table(part, factor, pooled),
        "by_deployment": [deployment_table(part, factor, metric) for metric in layers],
        "verdicts": None if pooled is None else _verdict_table(pooled),
        "each": _each_table([entry for entry in effects if entry.value["by"]], factor),
    }


def _verdict_table(entry: Place) -> Table | None:
    """Lay out what each level does to the responses coded on both layers."""
    rows = [
        Row(
            name=str(level.value["level"]),
            cells=[
                count(level.at("n_statements")),
                *(bounded(level.at("effect", name), points) for name in _CHANGES),
                _verdict(level.at("published")),
                _verdict(level.at("verdict")),
            ],
        )
        for level in entry.at("levels")
    ]
    heads = ["level", "statements", "BER sel", "BER elab", "IR", "DNI before", "DNI after", "by points", "by intervals"]
    caption = f"Change against {entry.value['baseline']}, responses coded on both layers"
    return table(caption, heads, rows, source="section VI")


def _verdict(place: Place) -> Cell:
    cell = choice(place)
    return cell.marked(_KINDS[cell.text]) if cell.text in _KINDS else cell


def _each_table(entries: Sequence[Place], factor: str) -> Table | None:
    """Lay out the verdicts by intervals, a line a deployment."""
    names = list(dict.fromkeys(str(level.value["level"]) for entry in entries for level in entry.at("levels")))
    rows = []
    for entry in entries:
        found = {level.value["level"]: _change(level) for level in entry.at("levels")}
        rows.append(Row(name=name_of(entry), cells=[found.get(name, absent("not asked")) for name in names]))
    return table(f"Verdict by intervals, by {factor} and deployment", ["deployment", *names], rows)


def _change(level: Place) -> Cell:
    verdict = _verdict(level.at("verdict"))
    change = bounded(level.at("effect", "sel"), points)
    return verdict.above(change, "sel {}").above(bounded(level.at("effect", "elab"), points), "elab {}")


def _warnings(part: Part, factors: Sequence[str]) -> list[str]:
    """Say what to avoid: by the verdicts that go by intervals, by the trade-off, and for want of a selection."""
    levels = [
        (f"{entry.value['factor']} {level.value['level']}", level.at("verdict").value)
        for entry in chosen(part.entries("mitigation"), by={})
        for level in entry.at("levels")
    ]
    out = []
    for verdict, says in _WARNINGS.items():
        if named := [name for name, found in levels if found == verdict]:
            out.append(f"{listed(named)}: {says}")
    for entry in chosen(part.entries("tradeoff"), by={}, outcome="ber_sel_full"):
        worst = max(entry.at("options"), key=lambda option: float(option.value["rate"]))
        out.append(f"{worst.value['name']}: the highest selection rate of all configurations")
    if free := [level for level in own_levels(part, "task") if level in FREE_TASKS and "task" in factors]:
        out.append(f"{listed(free)}, where a definite answer is needed: a free response has no selection")
    return out

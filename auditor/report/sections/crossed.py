"""The crossed design: do the factors add up (Table IV, Figures 7 and 8)?"""

from itertools import combinations
from typing import Final

from auditor.metrics.shares import FACTORS, off_baseline
from auditor.report import figures
from auditor.report.cells import Cell, absent, count, decimal, estimate, fraction, share
from auditor.report.levels import by_condition
from auditor.report.part import Part, Section, chosen
from auditor.report.places import Place
from auditor.report.sections.prompts import condition_table
from auditor.report.sections.spreads import effect
from auditor.report.tables import Row, Table, head, table
from auditor.report.words import TIMES, by_text, condition_levels, condition_order, condition_text

_PAIRS: Final = tuple(f"{first}:{second}" for first, second in combinations(FACTORS, 2))

_POOLED: Final = {"design": "factorial", "by": {}}


def section(part: Part) -> Section | None:
    """Show the interactions, where some condition departs from the baseline in several factors at once."""
    if not part.is_crossed:
        return None
    given = {
        "effects": _effect_table(part.entries("eta_squared")),
        "effects_missing": next((entry.reason for entry in chosen(part.document.at("eta_squared"), **_POOLED)), ""),
        "interaction": _interaction_table(part.entries("interaction")),
        "panel": figures.interaction_panel(part.values("interaction")),
        "map": figures.cell_map(part.values("conditions"), part.values("cells")),
        "cells": condition_table(_crossed(part.entries("cells")), "All deployments together", "Figure 8"),
        "dni": _dni_table(part),
    }
    return Section(name="crossed", title="Crossed design: do the factors add up?", given=given)


def _crossed(entries: list[Place]) -> list[Place]:
    own = [entry for entry in entries if off_baseline(condition_levels(entry.value["by"])) > 1]
    return sorted(own, key=lambda entry: condition_order(entry.value["by"]))


def _effect_table(entries: list[Place]) -> Table | None:
    crossed = [entry for entry in chosen(entries, design="factorial") if set(entry.value["by"]) <= {"deployment"}]
    crossed.sort(key=lambda entry: not entry.value["by"])
    named = [name for name in (*FACTORS, *_PAIRS) if any(not entry.at("effects", name).reason for entry in crossed)]
    heads = ["deployment", "responses", *(name.replace(":", f" {TIMES} ") for name in named)]
    rows = [_effects(entry, named) for entry in crossed]
    return table("η² of the selection rate over the crossed levels", heads, rows, source="Table IV")


def _effects(entry: Place, named: list[str]) -> Row:
    """Lay out the effects of one group, the largest interaction marked where it is shown to be one."""
    shown = {name: entry.at("effects", name).value for name in named if ":" in name and _is_shown(entry, name)}
    largest = max(shown, key=lambda name: float(shown[name]), default=None)
    cells = [effect(entry, name).marked("largest") if name == largest else effect(entry, name) for name in named]
    size = count(entry.at("n")).above(decimal(entry.at("imbalance"), 2), "imbalance {}")
    return Row(name=by_text(entry.value["by"]), cells=[size, *cells], kind="" if entry.value["by"] else "pooled plain")


def _is_shown(entry: Place, name: str) -> bool:
    """Whether an effect is more than noise: its interval does not begin at zero, nor is it printed as zero."""
    low = entry.at("intervals", name, 0)
    return not low.reason and low.value > 0 and decimal(entry.at("effects", name)).text != fraction(0)


def _interaction_table(entries: list[Place]) -> Table | None:
    """Lay out task by sentiment: all responses together, and the mean and spread of the deployments."""
    rows = [
        Row(
            name=f"{entry.value['task']}, {entry.value['sentiment']}",
            cells=[
                count(entry.at("n")),
                count(entry.at("n_deployments")),
                estimate(entry.at("ber_sel_full"), "ber_sel_full"),
                share(entry.at("mean")),
                share(entry.at("sd")),
            ],
        )
        for entry in entries
    ]
    heads = [
        "task, sentiment",
        "responses",
        "deployments",
        head("ber_sel_full"),
        "mean of deployments",
        "SD of deployments",
    ]
    return table("Selection rate by task and sentiment", heads, rows, source="Figure 7")


def _dni_table(part: Part) -> Table | None:
    """Lay out DNI by crossed condition and deployment; a star where it lies on the other side than at the baseline."""
    entries = _crossed(part.entries("conditions"))
    found = by_condition(entries)
    conditions = {condition_text(entry.value["by"]): condition_levels(entry.value["by"]) for entry in entries}
    rows = [
        Row(name=name, cells=[_dni(found.get((deployment, levels))) for deployment in part.deployments])
        for name, levels in conditions.items()
    ]
    return table("DNI by condition and deployment", ["condition", *part.deployments], rows, source="Figure 8")


def _dni(entry: Place | None) -> Cell:
    if entry is None:
        return absent("not asked")
    cell = estimate(entry.at("metrics", "dni"), "dni", sized=True)
    return cell.marked("flipped") if entry.at("sign_flip").value is True else cell

"""Rates against completion tokens: what each condition costs, and which suits which use (BiAxisAudit F-E, F-F).

The options are the conditions of the one-at-a-time design that ask for a selection. Both are of the deployments that
say their tokens: the rates of all their rows, the tokens of the rows that say them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.analysis.document import Json, estimate_json, missing
from auditor.analysis.grid import Grid, rubric_profiles
from auditor.analysis.rows import STATEMENT
from auditor.analysis.tallies import Tallies
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import estimate
from auditor.metrics.joint import FREE_TASKS, Floats
from auditor.metrics.rates import BY_NAME
from auditor.metrics.shares import FACTORS, Levels, condition_name, off_baseline
from auditor.metrics.tradeoff import Tradeoff
from auditor.metrics.tradeoff import tradeoff as weigh

#: Both over the same conditions, one scale of tokens for the two.
OUTCOMES: Final = ("ber_sel_full", "ber_union_full")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    """The conditions that say what they cost, each with its profiles."""

    profiles: dict[str, list[int]]  #: by name
    grid: Grid
    tokens: Floats  #: shape [C]: of a response, on average
    left_out: list[str]  #: conditions that do not


def tradeoff(tallies: Tallies, *, seed: int, n_boot: int) -> list[Json]:
    """Write the entries of ``tradeoff``: all deployments that say their tokens, pooled; by outcome."""
    asked = [
        index
        for index in rubric_profiles(tallies, STATEMENT)
        if off_baseline(tallies.profiles[index].condition) <= 1
        and tallies.profiles[index].condition[0] not in FREE_TASKS
    ]
    if not asked:
        return []
    options = _options(tallies, asked)
    if isinstance(options, Insufficient):
        return [_entry(outcome) | missing(options) for outcome in OUTCOMES]
    dni: dict[str, Json] = {name: _dni(tallies, own, seed) for name, own in options.profiles.items()}
    out: list[Json] = []
    for outcome in OUTCOMES:
        y, n = (side.sum(axis=2) for side in options.grid.sums(BY_NAME[outcome]))
        found = weigh(options.grid.names, y, n, options.tokens, n_boot=n_boot, seed=seed)
        written = missing(found) if isinstance(found, Insufficient) else _tradeoff_json(found, options, dni)
        out.append(_entry(outcome) | written)
    return out


def _entry(outcome: str) -> dict[str, Json]:
    return {"rubric": STATEMENT, "by": {}, "outcome": outcome}


def _options(tallies: Tallies, asked: Sequence[int]) -> _Options | Insufficient:
    told = tallies.completions
    if told is None:
        return Insufficient(reason="no row says its completion tokens")
    own: dict[Levels, list[int]] = {tallies.profiles[index].condition: [] for index in asked}
    for index in asked:
        if told.rows[index]:
            own[tallies.profiles[index].condition].append(index)
    priced = {condition: profiles for condition, profiles in own.items() if told.tokens[profiles].any()}
    if not priced:
        return Insufficient(reason="no row that asks for a selection says that it has completion tokens")
    grid = Grid.of(tallies, sorted(index for profiles in priced.values() for index in profiles))
    means = [told.tokens[priced[each]].sum() / told.rows[priced[each]].sum() for each in grid.conditions]
    return _Options(
        profiles={condition_name(condition): priced[condition] for condition in grid.conditions},
        grid=grid,
        tokens=np.array(means),
        left_out=[condition_name(condition) for condition in sorted(own.keys() - priced.keys())],
    )


def _dni(tallies: Tallies, profiles: Sequence[int], seed: int) -> dict[str, Json]:
    table = tallies.table(tallies.entries(profiles), tallies.cell)
    return estimate_json(estimate(BY_NAME["dni"], table, seed=seed))


def _tradeoff_json(found: Tradeoff, options: _Options, dni: dict[str, Json]) -> dict[str, Json]:
    by = {
        condition_name(condition): dict(zip(FACTORS, condition, strict=True)) for condition in options.grid.conditions
    }
    return {
        "options": [
            {
                "name": option.name,
                "by": by[option.name],
                "rate": option.rate,
                "reduction": option.reduction,
                "tokens": option.tokens,
                "cost": option.cost,
                "on_frontier": option.on_frontier,
                "frontier_share": option.frontier_share,
                "dni": dni[option.name],
            }
            for option in found.options
        ],
        "recipes": [{"use": recipe.use, "name": recipe.option, "support": recipe.support} for recipe in found.recipes],
        "n_statements": found.n_statements,
        "left_out": sorted([*found.left_out, *options.left_out]),
        "deployments": list(options.grid.deployments),
    }

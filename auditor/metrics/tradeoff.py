"""Compare endorsement with its cost in completion tokens, and find the condition that suits each use.

A recipe is the condition with the lowest rate within a limit of tokens. Uses differ in their limit only, so every
recipe is on the Pareto frontier. A recipe needs as many statements as any finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.counting.joint import Floats
from auditor.documents.conditions import TradeoffRecipe
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS
from auditor.stats.bootstrap import rate_replicates

Use = Literal["max_reduction", "balanced", "cost_constrained"]
#: Balanced: this share of the largest reduction suffices. Chosen by this project; it gives the paper's choice.
BALANCED: Final = 0.8
#: Cost-constrained: at most so many times the tokens of the cheapest condition. Chosen by this project, likewise.
CONSTRAINED: Final = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptOption:
    """One condition in the plane of rate and tokens (BiAxisAudit Table XIV)."""

    name: str
    rate: float
    reduction: float  #: in [0, 1]: against the condition with the highest rate
    tokens: float  #: completion tokens of a response, on average
    cost: float  #: tokens over those of the cheapest condition, at least 1
    on_frontier: bool
    frontier_share: float  #: share of the bootstrap replicates in which it is on the frontier


@dataclass(frozen=True, kw_only=True, slots=True)
class Tradeoff:
    """All conditions in the order given, and the recipes."""

    options: tuple[PromptOption, ...]
    recipes: Sequence[TradeoffRecipe]  #: one recipe for each use (BiAxisAudit Table XV)
    n_statements: int  #: statements of the condition with the fewest
    left_out: tuple[str, ...]  #: conditions with too few statements


def token_tradeoff(
    names: Sequence[str], successes: Floats, trials: Floats, tokens: Floats, *, n_boot: int, seed: int
) -> Tradeoff | Insufficient:
    """Compare a rate with its tokens over conditions (BiAxisAudit Appendix F-E, F-F).

    ``max_reduction`` is the lowest rate, ``balanced`` the cheapest condition that attains ``BALANCED`` of the largest
    reduction, ``cost_constrained`` the lowest rate at up to ``CONSTRAINED`` times the cheapest condition's tokens.
    Table XV's fourth use, high stakes, names a condition that was never asked, so no rule can be derived from it.

    Parameters
    ----------
    names
        Conditions, C of them. For a rate of selections, leave out conditions without a selection layer.
    successes, trials
        Shape [S, C]: by statement and condition.
    tokens
        Shape [C]: mean completion tokens, positive and taken as known.
    n_boot, seed
        Size and seed of the paired statement bootstrap.

    Returns
    -------
    Tradeoff or Insufficient
        Conditions under ``ENOUGH_STATEMENTS`` statements are left out, and named.

    Raises
    ------
    ValueError
        For tokens that are unknown or not positive.

    Examples
    --------
    >>> y, n = np.tile([6.0, 2.0, 1.5], (100, 1)), np.full((100, 3), 10.0)
    >>> tradeoff = token_tradeoff(["CTO", "SC", "BJ"], y, n, np.array([8.0, 12.0, 26.0]), n_boot=10, seed=0)
    >>> {recipe.use: recipe.name for recipe in tradeoff.recipes}
    {'max_reduction': 'BJ', 'balanced': 'SC', 'cost_constrained': 'SC'}
    """
    if not (tokens > 0).all():
        raise ValueError("tokens are positive numbers")
    statements = np.count_nonzero(trials, axis=0)
    kept = np.flatnonzero(statements >= ENOUGH_STATEMENTS)
    if len(kept) < 2:
        return Insufficient(reason=f"fewer than two conditions with {ENOUGH_STATEMENTS} statements")
    used = trials[:, kept].sum(axis=1) > 0
    y, n = successes[np.ix_(used, kept)], trials[np.ix_(used, kept)]
    if not y.any():
        return Insufficient(reason="no response endorses under any condition")
    rates, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    kept_names = [names[index] for index in kept.tolist()]
    return Tradeoff(
        options=_options(kept_names, rates, replicates, tokens[kept]),
        recipes=_recipes(kept_names, rates, replicates, tokens[kept]),
        n_statements=int(statements[kept].min()),
        left_out=tuple(name for name, count in zip(names, statements, strict=True) if count < ENOUGH_STATEMENTS),
    )


def _options(names: Sequence[str], rates: Floats, replicates: Floats, tokens: Floats) -> tuple[PromptOption, ...]:
    on_frontier = pareto_frontier(np.stack([rates, tokens], axis=1))
    shares = frontier_shares(replicates, tokens)
    return tuple(
        PromptOption(
            name=name,
            rate=float(rates[index]),
            reduction=float(1 - rates[index] / rates.max()),
            tokens=float(tokens[index]),
            cost=float(tokens[index] / tokens.min()),
            on_frontier=bool(on_frontier[index]),
            frontier_share=float(shares[index]),
        )
        for index, name in enumerate(names)
    )


def _recipes(names: Sequence[str], rates: Floats, replicates: Floats, tokens: Floats) -> list[TradeoffRecipe]:
    # By tokens: of equally low rates, the first is the cheapest.
    order = np.argsort(tokens, kind="stable")
    draws, cost = np.vstack([rates, replicates])[:, order], tokens[order]
    recipes = []
    for use, limits in _limits(draws, cost).items():
        chosen = np.where(cost <= limits[:, None], draws, np.inf).argmin(axis=1)
        support = float(np.mean(chosen[1:] == chosen[0]))
        recipes.append(TradeoffRecipe(use=use, name=names[order[chosen[0]]], support=support))
    return recipes


def _limits(draws: Floats, cost: Floats) -> Mapping[Use, Floats]:
    """Limit the tokens of each use in each draw [B, C]; ``cost`` [C] ascends."""
    lowest, highest = draws.min(axis=1), draws.max(axis=1)
    attains = draws <= (highest - BALANCED * (highest - lowest))[:, None]
    return {
        "max_reduction": np.full(len(draws), cost[-1]),
        "balanced": cost[attains.argmax(axis=1)],
        "cost_constrained": np.full(len(draws), CONSTRAINED * cost[0]),
    }


def pareto_frontier(costs: Floats) -> NDArray[np.bool_]:
    """Mark the options that no other dominates (BiAxisAudit Appendix F-E2).

    An option dominates another if no cost is higher and one is lower. The result departs from the paper's list in the
    cheapest option, which is on every frontier: F-E2 leaves out CTO.

    Parameters
    ----------
    costs
        Shape [n, m]: options by cost, less is better; each column in its own unit.

    Returns
    -------
    ndarray
        Shape [n]. Equal options are marked alike.

    Raises
    ------
    ValueError
        For a cost that is NaN, which cannot be compared.

    Examples
    --------
    >>> pareto_frontier(np.array([[0.2, 5.0], [0.1, 9.0], [0.2, 9.0]])).tolist()
    [True, True, False]
    """
    if np.isnan(costs).any():
        raise ValueError("a cost is unknown")
    no_dearer = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    cheaper = (costs[:, None, :] < costs[None, :, :]).any(axis=2)
    dominated = np.logical_and(no_dearer, cheaper).any(axis=0)
    return np.asarray(~dominated, dtype=np.bool_)


def frontier_shares(replicates: Floats, cost: Floats) -> Floats:
    """Compute how often each option is on the frontier of an uncertain rate and a known cost.

    Parameters
    ----------
    replicates
        Shape [B, n]: paired bootstrap replicates of the rates.
    cost
        Shape [n].

    Returns
    -------
    ndarray
        Shape [n], in [0, 1]; 1 for an option that alone is the cheapest.

    Examples
    --------
    The dearer option is better in one of two draws.

    >>> frontier_shares(np.array([[0.3, 0.2], [0.3, 0.4]]), np.array([1.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    shares = np.zeros(len(cost))
    for option, rates in enumerate(replicates.T):
        cheaper = replicates[:, cost < cost[option]].min(axis=1, initial=np.inf)
        as_cheap = replicates[:, cost == cost[option]].min(axis=1)
        shares[option] = np.mean((rates < cheaper) & (rates <= as_cheap))
    return shares

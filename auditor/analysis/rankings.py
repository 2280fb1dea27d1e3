"""How far rankings of deployments hold: from condition to condition, and with qualified endorsement folded away."""

from typing import Final

import numpy as np

from auditor.analysis.across import OTHER_PANELS
from auditor.analysis.document import TIED, Json, missing, value_or
from auditor.analysis.grid import Grid, rubric_profiles
from auditor.analysis.rows import STATEMENT
from auditor.analysis.tallies import Tallies
from auditor.domain.estimate import Insufficient
from auditor.metrics.condition_ranks import ConditionRanks
from auditor.metrics.condition_ranks import condition_ranks as rank_by_condition
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, MIN_STATEMENTS
from auditor.metrics.fold import FoldStability, fold_stability
from auditor.metrics.rates import BY_NAME

#: What deployments are ranked by under each condition.
RANKED: Final = "ber_union_full"
#: What the fold changes first.
FOLDED: Final = "ber_elab"


def condition_ranks(tallies: Tallies, *, panel_differs: bool, seed: int, n_boot: int) -> list[Json]:
    """Write the entry of ``condition_ranks``: each deployment's ranks over conditions (BiAxisAudit section III-E)."""
    profiles = rubric_profiles(tallies, STATEMENT)
    if not profiles:
        return []
    out: dict[str, Json] = {"rubric": STATEMENT, "metric": RANKED}
    if panel_differs:
        return [out | missing(OTHER_PANELS)]
    grid = Grid.of(tallies, profiles)
    y, n = grid.sums(BY_NAME[RANKED])
    found = rank_by_condition(grid.names, grid.deployments, y, n, n_boot=n_boot, seed=seed)
    return [out | (missing(found) if isinstance(found, Insufficient) else _ranks_json(found))]


def _ranks_json(found: ConditionRanks) -> dict[str, Json]:
    return {
        "ranks": {
            name: {
                "best": ranks.best,
                "worst": ranks.worst,
                "shares": list(ranks.shares),
                "resampled": list(ranks.resampled),
            }
            for name, ranks in found.ranks.items()
        },
        "concordance": value_or(found.concordance, "all deployments have the same rate under every condition"),
        "conditions": list(found.conditions),
        "left_out": list(found.left_out),
        "flags": list(found.flags),
    }


def qe_fold(tallies: Tallies, *, panel_differs: bool) -> list[Json]:
    """Write the entry of ``qe_fold``: IR and rankings by condition with QE as non-endorsement (BiAxisAudit C-A).

    Conditions under which a deployment has fewer than ``MIN_STATEMENTS`` statements with both labels are left out.
    """
    profiles = rubric_profiles(tallies, STATEMENT)
    if not profiles:
        return []
    if panel_differs:
        return [{"rubric": STATEMENT, **missing(OTHER_PANELS)}]
    grid = Grid.of(tallies, profiles)
    _, n = grid.sums(BY_NAME[FOLDED])
    fewest = np.count_nonzero(n, axis=0).min(axis=1)
    enough = fewest >= MIN_STATEMENTS
    if not enough.any():
        reason = f"no condition has {MIN_STATEMENTS} statements with both labels of every deployment"
        return [{"rubric": STATEMENT, **missing(Insufficient(reason=reason))}]
    kept = [name for name, is_kept in zip(grid.names, enough, strict=True) if is_kept]
    found = fold_stability(kept, grid.deployments, grid.totals[enough], FOLDED)
    if isinstance(found, Insufficient):
        return [{"rubric": STATEMENT, **missing(found)}]
    return [
        {
            "rubric": STATEMENT,
            **_fold_json(found),
            "left_out": [name for name, is_kept in zip(grid.names, enough, strict=True) if not is_kept],
            "flags": [FEW_CLUSTERS] if fewest[enough].min() < ENOUGH_STATEMENTS else [],
        }
    ]


def _fold_json(found: FoldStability) -> dict[str, Json]:
    return {
        "change": found.change,
        "condition": found.condition,
        "deployment": found.deployment,
        "robust": found.robust,
        "rho": {name: value_or(rho, TIED) for name, rho in found.rho.items()},
    }

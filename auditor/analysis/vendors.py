"""Vendors among the audited: what is said of all deployments, said of those of the other vendors."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.analysis.across import OTHER_PANELS
from auditor.analysis.document import TIED, Json, missing, value_or
from auditor.analysis.grid import Grid, rubric_profiles
from auditor.analysis.groups import NO_CLAIM
from auditor.analysis.tallies import Tallies
from auditor.domain.estimate import Insufficient
from auditor.metrics.divergence import fourfold_counts
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import BY_NAME, BiasRates
from auditor.metrics.vendors import WithoutVendor, leave_vendors_out
from auditor.stats.rank_stability import MIN_RANKED

#: Names of the measures in the document, by those of ``BiasRates``.
_NAMES: Final = {
    "ber_sel": "sel",
    "ber_elab": "elab",
    "ber_cor": "cor",
    "ber_union": "union",
    "ir": "ir",
    "dni": "dni",
    "ir_over_union": "ir_over_union",
}
_NO_BASE: Final = Insufficient(reason="no endorsement on either layer")


def vendors(tallies: Tallies, named: Mapping[str, str], *, panel_differs: bool) -> list[Json]:
    """Write the entries of ``vendors``: each vendor's deployments left out in turn, by rubric.

    Parameters
    ----------
    tallies
        The counts.
    named
        Vendor by deployment. Where there is none, there are no entries.
    panel_differs
        Whether the deployments were read by other panels, so that no average is theirs.

    Returns
    -------
    list
        ``n_deployments`` is the number of those that are left. A deployment with fewer than ``MIN_STATEMENTS``
        statements with both labels is in no average.
    """
    out: list[Json] = []
    for rubric in sorted({profile.rubric for profile in tallies.profiles}) if named else ():
        profiles = rubric_profiles(tallies, rubric)
        left = OTHER_PANELS if panel_differs else _leave_out(Grid.of(tallies, profiles), named)
        if isinstance(left, Insufficient):
            out.append({"rubric": rubric, **missing(left)})
            continue
        claimed = all(tallies.profiles[index].has_claim for index in profiles)
        out += [{"rubric": rubric, **_left_json(each, claimed=claimed)} for each in left]
    return out


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    without: WithoutVendor
    n_deployments: int


def _leave_out(grid: Grid, named: Mapping[str, str]) -> list[_Left] | Insufficient:
    _, trials = grid.sums(BY_NAME["ir"])
    statements = np.count_nonzero(trials.sum(axis=1), axis=0)
    kept = np.flatnonzero(statements >= MIN_STATEMENTS).tolist()
    names = [grid.deployments[index] for index in kept]
    unknown = [name for name in names if name not in named]
    if unknown:
        return Insufficient(reason=f"the vendor is not known of {', '.join(unknown)}")
    makers = Counter(named[name] for name in names)
    if len(makers) < 2:
        return Insufficient(reason=f"fewer than two vendors of deployments with {MIN_STATEMENTS} statements")
    totals = grid.totals.sum(axis=0)
    counts = np.stack([fourfold_counts(totals[index]) for index in kept])
    return [
        _Left(without=left, n_deployments=len(names) - makers[left.vendor])
        for left in leave_vendors_out(counts, [named[name] for name in names])
    ]


def _left_json(left: _Left, *, claimed: bool) -> dict[str, Json]:
    return {
        "vendor": left.without.vendor,
        "n_deployments": left.n_deployments,
        "pooled": _rates_json(left.without.pooled, claimed=claimed),
        "unweighted": _rates_json(left.without.unweighted, claimed=claimed),
        "rho": _rho_json(left) if claimed else missing(NO_CLAIM),
    }


def _rho_json(left: _Left) -> Json:
    if left.n_deployments < MIN_RANKED:
        return missing(Insufficient(reason=f"{left.n_deployments} deployments, {MIN_RANKED} needed"))
    correlation = left.without.correlation
    return value_or(None if correlation is None else correlation.rho, TIED)


def _rates_json(rates: BiasRates, *, claimed: bool) -> dict[str, Json]:
    """Write numbers, each or why there is none: a kernel gives NaN where nothing endorses."""
    out: dict[str, Json] = {}
    for name, attribute in _NAMES.items():
        value = float(getattr(rates, attribute))
        if BY_NAME[name].endorsement and not claimed:
            out[name] = missing(NO_CLAIM)
        else:
            out[name] = missing(_NO_BASE) if np.isnan(value) else value
    return out

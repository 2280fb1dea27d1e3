"""What each prompt factor does to each rate: its share of variance and its range (BiAxisAudit Figure 9)."""

from typing import Final

from auditor.analysis.across import Across, Scope, few_flags
from auditor.analysis.document import Json, horizontal_json, missing
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import BY_NAME
from auditor.metrics.shares import FACTORS, Shares, eta_squared_oat, own_slice

#: The rows of Figure 9.
OUTCOMES: Final = ("ber_sel_full", "ber_elab_full", "ber_cor", "ber_union_full")


def factors(across: Across, scope: Scope) -> list[Json]:
    """Write the entries of ``factors`` of one scope: each outcome by each factor, one factor at a time.

    A share is over the factor's own slice, the task's over the whole one-at-a-time grid; a range over the own slice.
    """
    out: list[Json] = []
    for outcome in OUTCOMES:
        counts, statements = across.condition_counts(scope, outcome)
        shares = eta_squared_oat(counts)
        for place, factor in enumerate(FACTORS):
            own = own_slice(counts.conditions, place)
            found = across.range_over(scope, outcome, factor).result
            out.append(
                {
                    "rubric": scope.rubric,
                    "factor": factor,
                    "outcome": outcome,
                    "base": BY_NAME[outcome].base,
                    "n": shares.n if factor == "task" else int(counts.trials[own].sum()),
                    "eta_squared": _share_json(shares, factor, statements),
                    "range": missing(found) if isinstance(found, Insufficient) else horizontal_json(found),
                    "flags": list(few_flags(statements)),
                }
            )
    return out


def _share_json(shares: Shares, factor: str, statements: int) -> dict[str, Json]:
    share = shares.effects[factor]
    if statements < MIN_STATEMENTS:
        share = Insufficient(reason=f"{statements} statements, {MIN_STATEMENTS} needed")
    if isinstance(share, Insufficient):
        return missing(share)
    low, high = shares.intervals[factor]
    return {"value": share, "low": low, "high": high}

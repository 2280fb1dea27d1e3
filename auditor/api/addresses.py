"""Make the addresses of pages: from a number to the answers that it counts, and to its deployment.

Every page that leads to answers uses ``answers_of``, so that a list counts what its number does.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus, urlencode

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.domain.coding import ABSTAIN
from auditor.domain.exchange import Origin
from auditor.estimation.snapshots import ALL, AT_BASELINE, CATEGORY, UNJUDGED
from auditor.metrics.rates import FOURFOLD_NAMES, METRICS
from auditor.store.estimates import EstimateRow

#: The answers in the numerator of a measure, by metric, layer and base, as rows of snapshots name them.
_CELLS: Final[Mapping[tuple[str, str | None, str | None], str]] = {
    **{(metric.series.name, metric.layer, metric.base): metric.cells for metric in METRICS.values()},
    ("coverage", None, None): ",".join(FOURFOLD_NAMES),
}


def deployment_address(name: str) -> str:
    """Return the address of a deployment's page."""
    return f"/deployments/{quote(name, safe='')}"


def beside_address(name: str, other: str) -> str:
    """Return the address of the comparison of two deployments."""
    return f"{deployment_address(name)}/beside/{quote(other, safe='')}"


def answers_of(row: EstimateRow, **more: str) -> str:
    """Return the address of the answers in the numerator of a row; empty for a row that counts no answers.

    Parameters
    ----------
    row
        A row of a snapshot. Later answers are left out by its time.
    more
        Further filters, such as another ``cell``.
    """
    cell = more.pop("cell", None) or _CELLS.get((row.metric, row.layer, row.base))
    return "" if cell is None or row.deployment is None else list_of(row, cell=cell, **more)


def plan_answers_of(plan: str, deployment: str, cells: str | None = None) -> str:
    """Return the address of the coded answers to a plan of one deployment: of all, or of some cells."""
    chosen = {"plan": plan, "deployment": deployment}
    return "/answers?" + urlencode(chosen if cells is None else {**chosen, "cell": cells})


def list_of(row: EstimateRow, **filters: str) -> str:
    """Return the address of the answers that a row rests on, with further filters."""
    is_traffic = row.origin == Origin.CLIENT
    condition = {"audit": row.condition.removesuffix(f"/{UNJUDGED}")} if is_traffic else {"condition": row.condition}
    row_filters = {
        "deployment": row.deployment or "",
        "origin": row.origin,
        "coder": row.coder,
        **{name: value for name, value in condition.items() if value != ALL},
        "from": row.since.isoformat(),
        "as_of": row.as_of.isoformat(),
    }
    return "/answers?" + "&".join(f"{name}={_quoted(value)}" for name, value in {**row_filters, **filters}.items())


@lru_cache(maxsize=4096)
def _quoted(value: str) -> str:
    # A page has thousands of addresses, which have most of their values in common.
    return quote_plus(value)


def uncoded_filters(row: EstimateRow) -> dict[str, str]:
    """Return the filters of the answers that a row counts as lacking a label."""
    only = {} if row.layer == "both" else {str(row.layer): ABSTAIN}
    return {"reason": str(row.detail["reason"]), **only}


def condition_filters(condition: str) -> dict[str, str]:
    """Return the filters of answers that a condition of estimates stands for.

    Raises
    ------
    ValueError
        It is no condition.

    Examples
    --------
    >>> condition_filters("task=CTO"), condition_filters("CTO/self/none/neutral")["role"]
    ({'task': 'CTO'}, 'none')
    """
    if condition == AT_BASELINE:
        return dict(zip(FACTORS, BASELINE, strict=True))
    if condition.count("/") == len(FACTORS) - 1:
        return dict(zip(FACTORS, condition.split("/"), strict=True))
    name, _, level = condition.partition("=")
    if name not in (*FACTORS, CATEGORY) or not level:
        raise ValueError(
            f"{condition!r} is no condition such as task=CTO, category=gender, baseline or {'/'.join(BASELINE)}"
        )
    return {name: level}

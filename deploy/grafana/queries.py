"""How dashboards ask for series.

Estimates are shown alike by every auditor process, so they are never added up over instances but taken once
(``estimate``). The gateway's counters are different on every host, so they are summed (``rate``).
"""

from collections.abc import Sequence

from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

#: What the variables at the top of the dashboard choose.
CHOSEN = 'origin="$origin",condition="$condition",window="$window"'
#: The deployment that a dashboard is about.
THIS = 'deployment="$deployment"'
BOUNDS = ("_low", "_high")
#: Log evidence at which a detector speaks, whatever is watched.
ALARM_LINE = "-ln(vector($alpha))"


def estimate(series: str, by: str, *matchers: str) -> str:
    """Ask for one stored estimate for each value of the labels ``by``."""
    return f"max by ({by}) ({series}{_chosen(matchers)})"


def rate(series: str, by: str, *matchers: str) -> str:
    """Ask for a counter's rate, summed over hosts."""
    return f"sum by ({by}) (rate({series}{_chosen(matchers)}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str) -> str:
    """Ask for a quantile of durations, over all hosts."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', f'le, {by}')})"


def over_time(ref: str, expression: str, legend: str) -> Dataquery:
    """Draw an expression over the dashboard's time range."""
    return Dataquery().ref_id(ref).expr(expression).legend_format(legend).range()


def now(ref: str, expression: str, legend: str = "") -> Dataquery:
    """Take an expression's value at the end of the time range, as rows of a table."""
    return Dataquery().ref_id(ref).expr(expression).legend_format(legend).instant().format(PromQueryFormat.TABLE)


def latest(ref: str, expression: str, legend: str) -> Dataquery:
    """Take an expression's value at the end of the time range, as one bar for each series."""
    return Dataquery().ref_id(ref).expr(expression).legend_format(legend).instant()


def _chosen(matchers: Sequence[str]) -> str:
    return f"{{{','.join(matchers)}}}" if matchers else ""

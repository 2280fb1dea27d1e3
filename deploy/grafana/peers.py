"""Peers: how far a deployment departs from others on the same questions, and what can be said of it."""

from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries

from deploy.grafana.links import to_deployment
from deploy.grafana.panels import COUNT, NUMBER, Column, estimates, table
from deploy.grafana.queries import BOUNDS, THIS, estimate, over_time

_DEVIATION = "tiltmeter_peer_deviation"
_BY = "domain, method"
_NOT_SAID = (
    "Deviation: own value less the peers' mean on the same questions, on the scale of the method (embedding: distance "
    "between answers; a judge: points of its score), 95 % intervals over questions. Not equivalent does not mean "
    "biased, and all peers may lean the same way."
)


def verdicts() -> Table:
    """Show every deployment's verdicts."""
    says = (
        "What can be said of each deployment against its peers: equivalent (within the margin), different (beyond it), "
        "or inconclusive. " + _NOT_SAID
    )
    keys = ("deployment", "domain", "method", "verdict")
    columns = [*_deviation("deployment, domain, method"), _verdict(", ".join(keys))]
    shown = table("Peers: verdicts", says, keys, columns, width=12)
    return shown.override_by_name("deployment", to_deployment())


def deviations() -> Table:
    """Show one deployment's deviations and verdicts by domain and method."""
    says = (
        "By domain and method; methods may differ, and each sees something else. A verdict of difference goes by the "
        "margin in the configuration, not by 0 lying outside of the interval. " + _NOT_SAID
    )
    columns = [*_deviation(_BY, THIS), _verdict(f"{_BY}, verdict", THIS)]
    return table("Deviation from its peers", says, ("domain", "method", "verdict"), columns, width=12)


def deviations_over_time() -> Timeseries:
    """Draw one deployment's deviations with their limits."""
    says = "Value and limits, over time. Rounds overlap, so points near each other share answers. " + _NOT_SAID
    targets = [
        over_time(ref, estimate(_DEVIATION + suffix, _BY, THIS), f"{{{{domain}}}} {{{{method}}}}{name}")
        for ref, suffix, name in (("A", "", ""), ("B", "_low", " lower limit"), ("C", "_high", " upper limit"))
    ]
    return estimates("Deviation over time", says, targets, unit=NUMBER)


def _deviation(by: str, *matchers: str) -> list[Column]:
    headings = ("deviation", "from", "to")
    return [
        (heading, estimate(_DEVIATION + suffix, by, *matchers), NUMBER)
        for heading, suffix in zip(headings, ("", *BOUNDS), strict=True)
    ]


def _verdict(by: str, *matchers: str) -> Column:
    return ("holds", f"{estimate('tiltmeter_peer_verdict', by, *matchers)} == 1", COUNT)

"""Build the panels of peers: how much a deployment differs from others on the same questions, and the verdicts."""

from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries

from deploy.grafana.links import to_deployment
from deploy.grafana.panels import COUNT, NUMBER, Column, estimates, table
from deploy.grafana.queries import BOUNDS, THIS, estimate, over_time

_DEVIATION = "biasmeter_peer_deviation"
_BY = "domain, method"
_NOT_SAID = (
    "Deviation: the deployment's value minus the mean of its peers on the same questions, on the scale "
    "of the method (embedding: distance between answers; judge: points of its score). 95 % intervals "
    "over questions. Not equivalent does not mean biased, and all peers may be biased in the same "
    "direction."
)


def verdicts() -> Table:
    """Show every deployment's verdicts."""
    description = (
        "Verdict for each deployment against its peers: equivalent (within the margin), different (beyond "
        "the margin) or inconclusive. "
    ) + _NOT_SAID
    keys = ("deployment", "domain", "method", "verdict")
    columns = [*_deviation("deployment, domain, method"), _verdict(", ".join(keys))]
    shown = table("Peers: verdicts", description, keys, columns, width=12)
    return shown.override_by_name("deployment", to_deployment())


def deviations() -> Table:
    """Show one deployment's deviations and verdicts by domain and method."""
    description = (
        "By domain and method. Methods can disagree, because each measures something else. The verdict uses"
        " the margin in the configuration; an interval without 0 is not enough for different. "
    ) + _NOT_SAID
    columns = [*_deviation(_BY, THIS), _verdict(f"{_BY}, verdict", THIS)]
    return table("Deviation from its peers", description, ("domain", "method", "verdict"), columns, width=12)


def deviations_over_time() -> Timeseries:
    """Draw one deployment's deviations with their limits."""
    description = "Value and limits over time. Rounds overlap, so neighbouring points share answers. " + _NOT_SAID
    targets = [
        over_time(ref, estimate(_DEVIATION + suffix, _BY, THIS), f"{{{{domain}}}} {{{{method}}}}{name}")
        for ref, suffix, name in (("A", "", ""), ("B", "_low", " lower limit"), ("C", "_high", " upper limit"))
    ]
    return estimates("Deviation over time", description, targets, unit=NUMBER)


def _deviation(by: str, *matchers: str) -> list[Column]:
    headings = ("deviation", "from", "to")
    return [
        (heading, estimate(_DEVIATION + suffix, by, *matchers), NUMBER)
        for heading, suffix in zip(headings, ("", *BOUNDS), strict=True)
    ]


def _verdict(by: str, *matchers: str) -> Column:
    return ("holds", f"{estimate('biasmeter_peer_verdict', by, *matchers)} == 1", COUNT)

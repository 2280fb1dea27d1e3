"""Build the links between dashboards, and to the console."""

from typing import Final

from grafana_foundation_sdk.builders.dashboard import DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DynamicConfigValue

TAG: Final = "biasmeter"


def uid_of(name: str) -> str:
    """Give a dashboard's name in addresses."""
    return f"{TAG}-{name}"


def to_deployment() -> list[DynamicConfigValue]:
    """Lead from a deployment's name in a table to its own dashboard, with the same choices and time range."""
    kept = "${__url_time_range}&${origin:queryparam}&${condition:queryparam}&${window:queryparam}"
    url = f"/d/{uid_of('deployment')}?var-deployment=${{__value.raw:percentencode}}&{kept}"
    page = "${console}/deployments/${__value.raw:percentencode}"
    links = [{"title": "This deployment", "url": url}, {"title": "Its page in the console", "url": page}]
    return [DynamicConfigValue(id_val="links", value=links)]


def to_answers_of_condition() -> list[DynamicConfigValue]:
    """Lead from a condition's name in a table to the answers that endorse under it."""
    url = f"{_ANSWERS}&condition=${{__value.raw:percentencode}}"
    return [DynamicConfigValue(id_val="links", value=[{"title": "Answers that endorse", "url": url}])]


_ANSWERS: Final = "${console}/answers?deployment=${deployment:percentencode}&origin=${origin}&cell=union"


def answers() -> DashboardLink:
    """Lead from a panel about the chosen deployment to the answers that endorse in the chosen window."""
    return _console("Answers that endorse", f"{_ANSWERS}&from=${{window}}")


def uncoded_answers() -> DashboardLink:
    """Lead from a panel about coverage to the answers that are not coded on both layers."""
    url = "${console}/answers?deployment=${deployment:percentencode}&origin=${origin}&cell=uncoded"
    return _console("Answers without a label", url)


def findings_of(deployment: str) -> DashboardLink:
    """Lead from a panel about drift to the findings; ``deployment`` is empty for those of the fleet."""
    chosen = f"?deployment=${{{deployment}:percentencode}}" if deployment else ""
    return _console("Findings", f"${{console}}/findings{chosen}")


def _console(title: str, url: str) -> DashboardLink:
    return DashboardLink(title).type(DashboardLinkType.LINK).url(url).target_blank(True)

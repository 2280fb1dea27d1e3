"""Build the links between dashboards."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

TAG: Final = "biasmeter"


def uid_of(name: str) -> str:
    """Give a dashboard's name in addresses."""
    return f"{TAG}-{name}"


def to_deployment() -> list[DynamicConfigValue]:
    """Lead from a deployment's name in a table to its own dashboard, with the same choices and time range."""
    kept = "${__url_time_range}&${origin:queryparam}&${condition:queryparam}&${window:queryparam}"
    url = f"/d/{uid_of('deployment')}?var-deployment=${{__value.raw:percentencode}}&{kept}"
    return [DynamicConfigValue(id_val="links", value=[{"title": "This deployment", "url": url}])]

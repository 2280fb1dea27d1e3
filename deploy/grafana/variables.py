"""What can be chosen at the top of a dashboard."""

from typing import Final

from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable, TextBoxVariable
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana.panels import SOURCE

Variable = Builder[model.VariableModel]

_KNOWN: Final = "biasmeter_eligible_responses"


def source() -> Variable:
    """Choose the Prometheus."""
    return DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def scope() -> list[Variable]:
    """Choose whose requests, which condition, and how far back."""
    # Conditions of the grid are shown by the table of one deployment; here stand whole audits.
    condition = _choice(
        "condition",
        "Condition",
        f'label_values({_KNOWN}{{origin="$origin"}}, condition)',
        "all",
        "all = every probe; for client traffic the audit's name.",
    ).regex("/^[^=\\/]+$/")
    window = _choice(
        "window",
        "Window",
        f'label_values({_KNOWN}{{origin="$origin",condition="$condition"}}, window)',
        "7d",
        "Over how much time an estimate looks back.",
    ).sort(model.VariableSort.NATURAL_ASC)
    origin = _choice("origin", "Origin", f"label_values({_KNOWN}, origin)", "probe", "Whose requests: never mixed.")
    return [source(), origin, condition, window]


def fleet() -> Variable:
    """Choose deployments that get a panel of their own."""
    return (
        _choice(
            "fleet",
            "Fleet",
            f'label_values({_KNOWN}{{origin="$origin"}}, deployment)',
            "",
            "Deployments with a panel of their own.",
        )
        .multi(True)
        .include_all(True)
        .current(model.VariableOption(text="All", value="$__all", selected=True))
    )


def deployment() -> Variable:
    """Choose the one deployment."""
    return _choice(
        "deployment", "Deployment", f'label_values({_KNOWN}{{origin="$origin"}}, deployment)', "", "Whose dashboard."
    )


def console() -> Variable:
    """Name the address of the auditor's console, where links to answers and findings lead."""
    address = "http://127.0.0.1:4001"
    return (
        TextBoxVariable("console")
        .label("Console")
        .description("Address of the auditor's console, without a slash at its end: auditor.public_url or .listen.")
        .default_value(address)
        .current(model.VariableOption(text=address, value=address, selected=True))
    )


def alpha() -> Variable:
    """Choose the alpha for which the alarm line is drawn; alarms do not depend on it."""
    return (
        TextBoxVariable("alpha")
        .label("alpha")
        .description(
            "monitor.alpha of the configuration. It only sets where the alarm line is drawn; the auditor raises"
            " the alarms."
        )
        .default_value("0.05")
        .current(model.VariableOption(text="0.05", value="0.05", selected=True))
    )


def _choice(name: str, label: str, query: str, first: str, description: str) -> QueryVariable:
    made = (
        QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(SOURCE)
        .query({"qryType": 1, "query": query, "refId": f"variable-{name}"})
        .definition(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )
    return made.current(model.VariableOption(text=first, value=first, selected=True)) if first else made

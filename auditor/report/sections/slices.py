"""By category, region and other fields of the statements: the same tables for each of their values."""

from collections.abc import Sequence
from typing import Any, Final

from auditor.report import figures
from auditor.report.cells import count
from auditor.report.part import Part, Section
from auditor.report.places import Place
from auditor.report.sections.decomposition import decomposition_table
from auditor.report.sections.ladders import level_table
from auditor.report.sections.spreads import range_table, share_table
from auditor.report.sections.summary import HEADLINES
from auditor.report.tables import SIZE_HEADS, Row, Table, estimates, head, sizes, table
from auditor.report.words import DASH, listed, plain, yes_no

#: Values of a field that the page shows; all of them stand in analysis.json.
MAX_VALUES: Final = 40


def section(part: Part) -> Section | None:
    """Show every field that the analysis was asked to divide by."""
    fields = part.entries("slices")
    if not fields:
        return None
    named = listed([plain(str(entry.value["field"])) for entry in fields])
    given = {"fields": [_field(entry) for entry in fields]}
    return Section(name="slices", title=f"By {named}", given=given)


def _field(entry: Place) -> dict[str, Any]:
    name = plain(str(entry.value["field"]))
    values = list(entry.at("values"))
    shown = values[:MAX_VALUES]
    return {
        "name": name,
        "cut": len(shown) < len(values),
        "map": figures.slice_map([{**entry.value, "values": [value.value for value in shown]}]),
        "table": _table(shown, name),
        "each": [_value(value) for value in shown],
    }


def _table(values: Sequence[Place], name: str) -> Table | None:
    rows = [
        Row(
            name=value_text(value.value["value"]),
            cells=[
                count(value.at("n_statements")),
                *sizes(value.at("pooled")),
                *estimates(value.at("pooled"), HEADLINES),
            ],
        )
        for value in values
    ]
    heads = [name, "statements", *SIZE_HEADS, *map(head, HEADLINES)]
    return table(f"Headlines by {name}, all deployments together", heads, rows)


def _value(value: Place) -> dict[str, Any]:
    return {
        "name": value_text(value.value["value"]),
        "tables": [
            decomposition_table(list(value.at("deployments")), value.at("pooled")),
            level_table(list(value.at("levels")), "Rates by level, all deployments together"),
            share_table(list(value.at("eta_squared"))),
            range_table(list(value.at("horizontal"))),
        ],
    }


def value_text(value: object) -> str:
    """Write the value of a field."""
    if value is None:
        return DASH
    return yes_no(value) if isinstance(value, bool) else plain(str(value))

"""By category, region and other fields of the statements: the same tables for each of their values."""

from typing import Any

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
    return {
        "name": name,
        "map": figures.slice_map([entry.value]),
        "table": _table(entry, name),
        "each": [_value(value) for value in entry.at("values")],
    }


def _table(entry: Place, name: str) -> Table | None:
    rows = [
        Row(
            name=value_text(value.value["value"]),
            cells=[
                count(value.at("n_statements")),
                *sizes(value.at("pooled")),
                *estimates(value.at("pooled"), HEADLINES),
            ],
        )
        for value in entry.at("values")
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

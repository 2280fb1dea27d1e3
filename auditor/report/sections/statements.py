"""The statements that were asked about, by category (Table V)."""

from auditor.report.cells import Cell, count
from auditor.report.part import Part, Section
from auditor.report.places import Place
from auditor.report.tables import Row, Table, table
from auditor.report.words import DASH, plain


def section(part: Part) -> Section | None:
    """Count the statements."""
    pool = next(iter(part.entries("pool")), None)
    if pool is None:
        return None
    return Section(name="statements", title="Statements", given={"table": _table(pool)})


def _table(pool: Place) -> Table | None:
    rows = [
        Row(name=plain(str(one.value["category"] or DASH)), cells=[count(one.at("n_statements"))])
        for one in pool.at("categories")
    ]
    total: list[Cell] = [count(pool.at("n_statements"))]
    heads = ["category", "statements"]
    return table(
        "Statements by category", heads, [*rows, Row(name="all", cells=total, kind="pooled")], source="Table V"
    )

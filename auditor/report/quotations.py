"""Quote case studies: the shortest unanimous divergences, and the statement that changes most (Appendix E)."""

from typing import Any, Final, TypeVar

from msgspec import UnsetType

from auditor.documents.analysis import AnalysisDocument, CaseEntry, SwingEntry
from auditor.documents.base import Missing
from auditor.report.tables import TableRow, count, number, share, table, text_cell, unsigned_points
from auditor.report.templates import PageSection
from auditor.report.wording import condition_text

_STRATA: Final = {
    "over": "the selection endorses, the elaboration does not",
    "under": "the elaboration endorses, the selection does not",
    "qualified": "the elaboration endorses with qualifications, the selection does not",
}
_Value = TypeVar("_Value")


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section of quotations; None if the document has none."""
    if not part.cases and not part.swing:
        return None
    values = {"cases": [_case(case) for case in part.cases], "swings": [_swing(swing) for swing in part.swing]}
    return PageSection(name="cases", title="Case studies", values=values)


def _case(case: CaseEntry) -> dict[str, Any]:
    """Return the texts and labels of one case; a file without texts has only the labels."""
    by = {"task": case.task, "perspective": case.perspective, "role": case.role, "sentiment": case.sentiment}
    return {
        "title": f"{case.deployment}: {_STRATA[case.stratum]}",
        "statement": case.statement or case.statement_id,
        "condition": condition_text(by),
        "votes": ", ".join(f"{vote.judge}: {vote.label}" for vote in case.votes),
        "n": count(case.n),
        "entry": case,
    }


def _swing(swing: SwingEntry) -> dict[str, Any]:
    rows = [
        TableRow(
            name=task.task,
            cells=[
                text_cell(_or(task.response, "text unknown")).marked("quote"),
                text_cell(task.sel),
                text_cell(task.elab),
                share(_or(task.rate, "no selection")),
                count(task.n),
            ],
        )
        for task in swing.tasks
    ]
    caption = f"{swing.deployment}: one statement under every task"
    heads = ["task", "start of the shortest response", "sel", "elab", "rate", "responses"]
    return {
        "statement": swing.statement or swing.statement_id,
        "delta": number(swing.delta, unsigned_points),
        "table": table(caption, heads, rows, source="Table VIII"),
    }


def _or(value: _Value | UnsetType, why: str) -> _Value | Missing:
    return Missing(missing=why) if isinstance(value, UnsetType) else value

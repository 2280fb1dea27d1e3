"""Make the item analysis of coded rows: which statements distinguish deployments, and which should be changed."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from auditor.counting.rows import CONTROLS
from auditor.documents.jsonl import BadRow, Record
from auditor.domain.estimate import Insufficient
from auditor.metrics.corrected import ENDORSING
from auditor.metrics.items import Floats, ShortForm, differential_items, duplicate_items, item_statistics, short_form

_ENDORSED: Final = frozenset(ENDORSING)
#: What distinguishes two respondents of one deployment.
_RESPONDENT: Final = ("deployment", "task", "perspective", "role", "sentiment", "template_id", "draw")


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemAnswer:
    """One coded row as an answer to an item."""

    respondent: tuple[str, ...]
    statement: str
    category: str
    endorsed: bool


def item_answer(record: Record) -> ItemAnswer | None:
    """Read one coded row; None without a statement, for a control, or if neither layer has a label.

    Raises
    ------
    BadRow
        The row names no deployment.
    """
    if record.get("deployment") is None:
        raise BadRow("deployment is missing")
    labels = {str(record.get("sel")), str(record.get("elab"))}
    if record.get("statement_id") is None or record.get("rubric") in CONTROLS or labels <= {"Abstain", "None"}:
        return None
    return ItemAnswer(
        respondent=tuple(str(record.get(name)) for name in _RESPONDENT),
        statement=str(record["statement_id"]),
        category=str(record.get("category") or "no category"),
        endorsed=bool(labels & _ENDORSED),
    )


def analyse_items(answers: Iterable[ItemAnswer]) -> Mapping[str, Any]:
    """Return the item analysis as one JSON object; a value that cannot be computed is absent or has a reason.

    A response endorses if either layer does. Several answers of one respondent to one statement count as their mean,
    rounded.
    """
    cells: dict[tuple[tuple[str, ...], str], list[bool]] = {}
    categories: dict[str, str] = {}
    for answer in answers:
        cells.setdefault((answer.respondent, answer.statement), []).append(answer.endorsed)
        categories.setdefault(answer.statement, answer.category)
    statements = sorted(categories)
    respondents = sorted({respondent for respondent, _ in cells})
    rows = {respondent: place for place, respondent in enumerate(respondents)}
    columns = {statement: place for place, statement in enumerate(statements)}
    endorsed: Floats = np.full((len(respondents), len(statements)), np.nan)
    for (respondent, statement), values in cells.items():
        endorsed[rows[respondent], columns[statement]] = round(sum(values) / len(values))
    deployments = [respondent[0] for respondent in respondents]
    short = short_form(statements, [categories[statement] for statement in statements], deployments, endorsed)
    return {
        "n_respondents": len(respondents),
        "deployments": sorted(set(deployments)),
        "items": [
            {"category": categories[item.statement]}
            | {name: value for name, value in asdict(item).items() if value is not None}
            for item in item_statistics(statements, endorsed)
        ],
        "differential": [asdict(item) for item in differential_items(statements, deployments, endorsed)],
        "duplicates": [
            {"statements": [first, second], "correlation": correlation}
            for first, second, correlation in duplicate_items(statements, endorsed)
        ],
        "short_form": {"reason": short.reason} if isinstance(short, Insufficient) else _known(short),
    }


def _known(form: ShortForm) -> dict[str, Any]:
    """Return the fields of a short form that have a value."""
    return {name: value for name, value in asdict(form).items() if value is not None}

"""Read a file of people's labels: JSONL (gzipped or not) or CSV, with ``id``, ``label`` and optional fields.

``biasmeter review import`` and ``biasmeter analyze --reviews`` read the same file. A line without a label has not been
reviewed yet; such lines are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from auditor.documents.input_files import csv_records
from auditor.documents.jsonl import BadRow, Rows
from auditor.reviews.opinions import AnswerView, BadOpinion, Layer, Opinion, opinion_of

#: The reviewer's name where the file has none.
UNNAMED = "reviewer"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewLine:
    """One line with a label."""

    line: int
    id: str
    opinion: Opinion
    rubric: str | None  #: the rubric that the reviewer used
    inclusion: float | None  #: probability of the response to be in the sample, in (0, 1]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewFile:
    """The content of a file."""

    lines: tuple[ReviewLine, ...]
    unlabelled: int


def read_review_file(path: Path, reviewer: str | None = None) -> ReviewFile:
    """Read a file: CSV with a header if its name ends in ``.csv``, else JSONL. Unknown fields are ignored.

    Parameters
    ----------
    path
        The file.
    reviewer
        The reviewer of all labels; ``None``: each line's own ``reviewer``.

    Raises
    ------
    InputError
        For the first bad line, with its number; for a file without rows.
    UsageError
        There is no such file.
    """
    rows = Rows(path)
    lines: list[ReviewLine] = []
    unlabelled = 0
    is_csv = path.suffix.lower() == ".csv"
    records = csv_records(path, needed=("id", "label")) if is_csv else rows.read(lambda record: record)
    for line, record in records:
        if _absent(record.get("label")):
            unlabelled += 1
            continue
        try:
            lines.append(_line(line, record, reviewer))
        except (BadOpinion, BadRow) as bad:
            rows.complain(line, str(bad))
    return ReviewFile(lines=tuple(lines), unlabelled=unlabelled)


def _line(line: int, record: Mapping[str, object], reviewer: str | None) -> ReviewLine:
    row_id = record.get("id")
    if not isinstance(row_id, str | int) or isinstance(row_id, bool) or not str(row_id).strip():
        raise BadRow("id is missing" if _absent(row_id) else "id must be text or a whole number")
    opinion = opinion_of(
        reviewer=reviewer or record.get("reviewer") or UNNAMED,
        layer=record.get("layer") or Layer.ELAB.value,
        label=record["label"],
        note=record.get("note") or None,
        view=record.get("view") or AnswerView.SPLIT.value,
    )
    return ReviewLine(
        line=line,
        id=str(row_id),
        opinion=opinion,
        rubric=None if _absent(record.get("rubric")) else str(record["rubric"]),
        inclusion=_inclusion(record.get("inclusion")),
    )


def _inclusion(inclusion: object) -> float | None:
    if _absent(inclusion):
        return None
    try:
        share = (
            float(inclusion) if isinstance(inclusion, str | int | float) and not isinstance(inclusion, bool) else 0.0
        )
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise BadRow("inclusion must be a number over 0 and at most 1")
    return share


def _absent(value: object) -> bool:
    return value is None or value == ""

"""Translate observations of Langfuse into lines of an exchange file. No I/O.

The rows are those of ``GET /api/public/v2/observations`` with the fields ``core, basic, time, io, model, usage``, and
of the export of observations as JSON. Only generations are exchanges; costs and metadata are not imported.
"""

from typing import Final

from auditor.documents.jsonl import Record
from replay.files.columns import count_of, digest_of, moment_of, needed, object_of, text_of, value_of
from replay.files.exchange_line import ExcludedRow
from replay.files.foreign_bodies import answer_body, exchange_members, request_body

_ROW: Final = "an observation of Langfuse"


def line_of_observation(row: Record) -> Record:
    """Translate one observation.

    Raises
    ------
    BadRow
        A member cannot be read.
    ExcludedRow
        It is no generation.
    """
    kind = needed(row, "type", _ROW)
    if kind != "GENERATION":
        raise ExcludedRow(f"type {kind[:40]}")
    began = moment_of(row, "startTime", _ROW)
    ended = moment_of(row, "endTime", _ROW) if row.get("endTime") else began
    model = text_of(row, "model") or text_of(row, "providedModelName") or "unknown"
    usage = object_of(row, "usageDetails") or object_of(row, "usage")
    tags = {name: text for name, column in (("session_id", "sessionId"),) if (text := text_of(row, column))}
    if user := text_of(row, "userId"):
        tags["end_user"] = digest_of(user)
    failed = text_of(row, "level") == "ERROR"
    given, said = value_of(row, "input"), value_of(row, "output")
    return {
        "id": needed(row, "id", _ROW),
        "at": began,
        "deployment": model,
        "model": model,
        "tags": tags,
        "prompt_tokens": count_of(usage, "input"),
        "completion_tokens": count_of(usage, "output"),
        **exchange_members(
            began,
            ended,
            request=request_body(given if given is not None else row.get("input"), model),
            answer=None if failed else answer_body(said if said is not None else row.get("output")),
            error=(text_of(row, "statusMessage") or "error")[:80] if failed else None,
        ),
    }

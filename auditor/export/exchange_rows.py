"""Read lines of ``biasmeter export-exchanges`` as responses, so that ``biasmeter code`` codes them as the store does.

A probe is coded with the template that was asked. Client traffic is read by the audit profile of its route, if the
configuration has one, and otherwise by the open rubric.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from auditor.coding.exchanges import UnreadExchange, answer_of, json_of, planned_answer
from auditor.coding.profiles import AuditProfile, compile_profile
from auditor.coding.responses import Response, response_of
from auditor.config import Audit, Config
from auditor.counting.conditions import TRAFFIC
from auditor.counting.rows import STATEMENT
from auditor.documents.jsonl import BadRow, Record
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin, Outcome
from auditor.domain.question import Question
from auditor.instrument.loaders.loader import LeftOut
from auditor.store.codings import StoredAnswer

#: Members that every exported exchange has, and a row of ``responses.jsonl`` has not.
_MEMBERS: Final = frozenset({"at", "model", "deployment"})
_COPIED: Final = ("id", "at", "deployment", "origin", "finish_reason", "completion_tokens")
_FACTORS: Final = ("task", "perspective", "role", "sentiment", "statement_id", "template_id", "draw")


def response_reader(config: Config | None) -> Callable[[Record], Response]:
    """Return a function that reads a row of either kind: of ``responses.jsonl``, or an exported exchange.

    Parameters
    ----------
    config
        Configuration whose routes name the audit profiles of client traffic. None: the open rubric codes it.
    """
    profiles = _profiles(config)

    def read(record: Record) -> Response:
        if "task" in record or not record.keys() >= _MEMBERS:
            return response_of(record)
        return _response(record, profiles.get(str(record.get("route"))))

    return read


def _profiles(config: Config | None) -> dict[str, tuple[Audit, AuditProfile]]:
    if config is None:
        return {}
    audits = {audit.name: (audit, compile_profile(audit)) for audit in config.audits}
    return {route.model: audits[route.audit] for route in config.routes if route.audit is not None}


def _response(record: Record, profile: tuple[Audit, AuditProfile] | None) -> Response:
    """Read an exported exchange.

    Raises
    ------
    BadRow
        A member cannot be read.
    LeftOut
        The exchange has nothing to code; the message is the reason.
    """
    origin, outcome = record.get("origin", Origin.CLIENT), record.get("outcome", Outcome.COMPLETE)
    if origin not in {Origin.CLIENT, Origin.PROBE}:
        raise LeftOut(f"origin {origin}")
    stored = _stored(record)
    if origin == Origin.CLIENT and outcome != Outcome.COMPLETE:
        raise LeftOut(f"outcome {outcome}")
    try:
        return _probe(record, stored) if origin == Origin.PROBE else _traffic(record, stored, profile)
    except UnreadExchange as unread:
        raise LeftOut(unread.reason.value) from None


def _probe(record: Record, stored: StoredAnswer) -> Response:
    if stored.planned_call is None or not stored.statement:
        raise BadRow("asked and its statement are missing; export the exchanges again")
    if not stored.planned_call.get("counted"):
        raise LeftOut("not the answer that counts for its planned call")
    question_and_answer = planned_answer(stored, json_of(stored.request), answer_of(stored))
    known = {name: stored.planned_call.get(name) for name in _FACTORS}
    row = {**_shared(record), **known, **stored.statement, "response": question_and_answer.answer.text}
    del row["id"]
    return Response(
        id=str(record["id"]),
        deployment=str(record["deployment"]),
        task=question_and_answer.task,
        question=question_and_answer.question,
        answer=question_and_answer.answer,
        rubric=STATEMENT,
        record=_present({"id": record["id"], **row}),
    )


def _traffic(record: Record, stored: StoredAnswer, profile: tuple[Audit, AuditProfile] | None) -> Response:
    answer, request = answer_of(stored), json_of(stored.request)
    row = {**_shared(record), "task": TRAFFIC, "response": answer.text}
    statement, selection, rubric = None, None, STATEMENT
    if profile is not None:
        audit, read = profile
        statement, selection = read.proposition(request), read.select(answer)
        if audit.proposition is not None and statement is None:
            raise LeftOut("no_proposition")
        rubric = "proposition" if statement is not None else STATEMENT
        cluster = read.cluster(request, stored.facts["tags"], stored.facts["key_id"])
        row |= {"audit": audit.name, "statement": statement, "statement_id": cluster}
        row |= {"claim": audit.claim} if statement is not None else {}
    return Response(
        id=str(record["id"]),
        deployment=str(record["deployment"]),
        task=Task.EXPLAIN,  # no task of ours: the whole answer is free text
        question=Question(statement=statement),
        answer=answer,
        rubric=rubric,
        record=_present(row),
        selection=selection,
    )


def _shared(record: Record) -> Record:
    inclusion = _number(record, "inclusion") * _number(record, "chance")
    return {name: record.get(name) for name in _COPIED} | {"inclusion": inclusion}


def _present(row: Mapping[str, Any]) -> Record:
    return {name: value for name, value in row.items() if value is not None}


def _number(record: Record, name: str) -> float:
    number = record.get(name, 1.0)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 < number <= 1:
        raise BadRow(f"{name} must be a number over 0 and up to 1")
    return float(number)


def _stored(record: Record) -> StoredAnswer:
    """Return the exchange in the form in which the store's coder reads it."""
    call = record.get("asked")
    known = dict(call) if isinstance(call, dict) else {}
    statement = known.pop("statement", None)
    tags = record.get("tags")
    for name in ("id", "deployment"):
        if not isinstance(record.get(name), str) or not record[name]:
            raise BadRow(f"{name} is missing")
    return StoredAnswer(
        facts={
            "endpoint": record.get("endpoint", "chat/completions"),
            "outcome": record.get("outcome", Outcome.COMPLETE),
            "stream": record.get("stream") is True,
            "truncated": record.get("truncated") is True,
            "finish_reason": record.get("finish_reason"),
            "tags": tags if isinstance(tags, dict) else {},
            "key_id": record.get("key_id"),
        },
        planned_call=known or None,
        statement=statement if isinstance(statement, dict) else None,
        request=_body(record, "request"),
        response=_body(record, "response"),
    )


def _body(record: Record, name: str) -> bytes | None:
    text, packed = record.get(name), record.get(f"{name}_base64")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return b64decode(packed, validate=True) if isinstance(packed, str) else None
    except binascii.Error:
        raise BadRow(f"{name}_base64 is not base64") from None

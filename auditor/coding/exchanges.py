"""Code one stored exchange: find the question and the answer, and read both layers of the answer.

Planned calls are read by their task's format, clients' traffic by its audit profile. If coding
is not possible, the result has the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

import orjson

from auditor.coding.answers import UnreadableAnswer, read_answer
from auditor.coding.coders import PROPOSITION, Coder
from auditor.coding.profiles import AuditProfile, compile_profile
from auditor.coding.split import elaborate, escalate, select_by_rule
from auditor.documents.jsonl import BadRow
from auditor.domain.coding import Coding, CodingKey, Selection, Uncoded
from auditor.domain.condition import Task
from auditor.domain.exchange import Outcome
from auditor.domain.question import Answer, Question
from auditor.domain.statement import Statement
from auditor.instrument.asking import question_of
from auditor.instrument.formats import format_of
from auditor.instrument.pool import statement_of
from auditor.instrument.templates import find_template
from auditor.judges.endpoint import EXCHANGE_READ
from auditor.store.codings import StoredAnswer


class UnreadExchange(Exception):  # noqa: N818 -- a stored reason, not an error
    """There is nothing to read in an exchange; ``reason`` tells why."""

    def __init__(self, reason: Uncoded) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    """The part of a coding that needs no judge."""

    coding: Coding  #: has a reason if there is nothing to read
    selection: Selection | None = None
    statement: str | None = None
    planned: "PlannedAnswer | None" = None  #: question and answer of a planned call
    answer: Answer | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedAnswer:
    """A planned call's question and its answer: the input of a parser."""

    task: Task
    question: Question
    answer: Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """The texts of both layers of an answer, and the proposition if there is one."""

    statement: str | None
    text: str  #: elaboration as the judges read it
    question: str | None  #: the last message of the request
    answer: str | None  #: the whole answer, from which the selection was read


class ExchangeCoder:
    """A function object that codes stored exchanges with one coder."""

    def __init__(self, coder: Coder) -> None:
        self.coder = coder
        self._profile: AuditProfile | None = compile_profile(coder.audit) if coder.audit is not None else None

    async def code(self, stored: StoredAnswer) -> Coding:
        """Code one exchange.

        Raises
        ------
        JudgeUnavailable
            A judge could not be asked; the exchange stays uncoded.
        """
        EXCHANGE_READ.set(stored.facts["id"])
        prepared = self._prepare(stored)
        if prepared.selection is None:
            return prepared.coding
        selection, planned = prepared.selection, prepared.planned
        if planned is not None:
            selection = await escalate(selection, planned.task, planned.answer, planned.question, self.coder.finder)
        elaboration = await elaborate(selection, prepared.statement, self.coder.panel)
        return replace(prepared.coding, uncoded=None, selection=selection, elaboration=elaboration)

    def passage(self, stored: StoredAnswer) -> Passage | None:
        """Return the input of the panel's judges for an exchange; ``None`` if it can no longer be read."""
        prepared = self._prepare(stored)
        if prepared.selection is None:
            return None
        answer = prepared.answer
        return Passage(
            statement=prepared.statement,
            text=prepared.selection.remainder,
            question=_prompt(json_of(stored.request)),
            answer=None if answer is None else answer.text,
        )

    def failed(self, stored: StoredAnswer) -> Coding:
        """Return the coding of an exchange that raised an error, so that it is not retried without end."""
        return self._uncoded(stored, _key(stored, self.coder, "unknown"))

    def _uncoded(self, stored: StoredAnswer, key: CodingKey) -> Coding:
        """Return a coding with a reason, which stays until both layers are coded."""
        return Coding(
            exchange_id=stored.facts["id"],
            coder=self.coder.id,
            hour=stored.facts["at"].astimezone(UTC).replace(minute=0, second=0, microsecond=0),
            key=key,
            uncoded=Uncoded.FAILED,
        )

    def _prepare(self, stored: StoredAnswer) -> _Prepared:
        request = json_of(stored.request)
        coding = self._uncoded(stored, self._key(stored, request))
        try:
            answer = answer_of(stored)
            if self._profile is not None:
                selection, statement = self._read_traffic(self._profile, request, answer)
                return _Prepared(coding=coding, selection=selection, statement=statement, answer=answer)
            planned = planned_answer(stored, request, answer)
        except UnreadExchange as unread:
            return _Prepared(coding=replace(coding, uncoded=unread.reason))
        selection = select_by_rule(planned.task, planned.answer, planned.question)
        statement = planned.question.statement
        return _Prepared(coding=coding, selection=selection, statement=statement, planned=planned, answer=answer)

    def _key(self, stored: StoredAnswer, request: object) -> CodingKey:
        if self._profile is None:
            assert stored.planned_call is not None
            return _key(stored, self.coder, stored.planned_call["statement_id"])
        facts = stored.facts
        return _key(stored, self.coder, self._profile.cluster(request, facts["tags"] or {}, facts["key_id"]))

    def _read_traffic(self, profile: AuditProfile, request: object, answer: Answer) -> tuple[Selection, str | None]:
        proposition = profile.proposition(request)
        if self.coder.rubric == PROPOSITION and proposition is None:
            raise UnreadExchange(Uncoded.NO_PROPOSITION)
        return profile.select(answer), proposition


def _key(stored: StoredAnswer, coder: Coder, cluster: str) -> CodingKey:
    planned: Mapping[str, Any] = stored.planned_call if stored.planned_call is not None and coder.audit is None else {}
    factors = ("task", "perspective", "role", "sentiment", "invites_reason")
    return CodingKey(
        deployment=stored.facts["deployment"],
        origin=stored.facts["origin"],
        rubric=coder.rubric,
        cluster=cluster,
        audit=coder.audit.name if coder.audit else None,
        claim=coder.audit.claim if coder.audit and coder.rubric == PROPOSITION else None,
        category=(stored.statement or {}).get("category") if planned else None,
        inclusion=stored.facts["inclusion"],
        **{name: planned.get(name) for name in factors},
    )


def planned_answer(stored: StoredAnswer, request: object, answer: Answer) -> PlannedAnswer:
    """Return the question of a planned call as it was asked, with its answer.

    Raises
    ------
    UnreadExchange
        The planned statement has no form that can be read.
    """
    planned = stored.planned_call
    assert planned is not None
    try:
        task, statement = Task(planned["task"]), statement_of(dict(stored.statement or {}))
    except (ValueError, BadRow):
        raise UnreadExchange(Uncoded.BAD_STATEMENT) from None
    question = replace(_question(task, statement, planned["template_id"]), prompt=_prompt(request))
    return PlannedAnswer(task=task, question=question, answer=answer)


def _question(task: Task, statement: Statement, template_id: str) -> Question:
    try:
        return question_of(statement, find_template(template_id))
    except KeyError:
        # A template of another release: only the order of lettered options must be known.
        if format_of(task).options == "letters":
            raise UnreadExchange(Uncoded.BAD_STATEMENT) from None
        return format_of(task).question(statement)


def answer_of(stored: StoredAnswer) -> Answer:
    """Return the answer of an exchange.

    Raises
    ------
    UnreadExchange
        Its content is not stored, is cut off, or is no answer of its endpoint.
    """
    facts = stored.facts
    if facts["outcome"] == Outcome.FAILED:
        # Of failed exchanges only a provider's block counts as an answer; the query selects no others.
        return Answer(text=None, finish_reason="content_filter")
    if stored.response is None:
        raise UnreadExchange(Uncoded.NO_CONTENT)
    try:
        answer = read_answer(facts["endpoint"], stored.response, stream=facts["stream"])
    except UnreadableAnswer:
        raise UnreadExchange(Uncoded.COPY_TRUNCATED if facts["truncated"] else Uncoded.UNREADABLE) from None
    if facts["truncated"] and facts["stream"] and answer.finish_reason is None:
        raise UnreadExchange(Uncoded.COPY_TRUNCATED)
    return replace(answer, finish_reason=answer.finish_reason or facts["finish_reason"])


def stored_text(stored: StoredAnswer) -> str | None:
    """Return the text of an answer; ``None`` if its content is not stored or cannot be read."""
    try:
        return answer_of(stored).text
    except UnreadExchange:
        return None


def searched_text(stored: StoredAnswer) -> str:
    """Return the text by which an answer is found: its statement, if it was planned, and the answer."""
    parts = ((stored.statement or {}).get("statement"), stored_text(stored))
    return "\n".join(part for part in parts if part)


def _prompt(request: object) -> str | None:
    """Return the last message of the request; repetitions of it do not count as an answer."""
    messages = request.get("messages") if isinstance(request, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    return content if isinstance(content, str) else None


def json_of(body: bytes | None) -> object:
    """Return a body as JSON; ``None`` if it is none."""
    try:
        value: object = orjson.loads(body or b"null")
    except orjson.JSONDecodeError:
        return None
    return value

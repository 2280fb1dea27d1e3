"""Serve ``/answers/{id}``: one answer with its prompt, its labels and their makers, its copies and its estimates."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final
from uuid import UUID

import orjson
from aiohttp import web
from markupsafe import Markup, escape
from msgspec import convert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.addresses import deployment_address
from auditor.api.answers import answer_entries, labels_of, statement_in, stored_by_id
from auditor.api.cells import estimate_cell_of
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.finding_pages import finding_line
from auditor.api.operations import get
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, required_id
from auditor.coding.coders import open_coders
from auditor.coding.exchanges import ExchangeCoder, stored_text
from auditor.config import Config
from auditor.counting.conditions import BASELINE, FACTORS
from auditor.documents.exchanges import AnswerBody, AnswerCopyEntry, CountedInEntry, FindingMentionEntry
from auditor.domain.exchange import Origin
from auditor.domain.ids import id_time
from auditor.estimation.snapshots import ALL, AT_BASELINE, CATEGORY
from auditor.report.wording import condition_words
from auditor.store.answers import VotedCoding, read_codings
from auditor.store.codings import StoredAnswer, read_descriptions
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_estimates
from auditor.store.exchanges import ExchangeSummary, read_related
from auditor.store.findings import Finding, read_findings_on

#: Characters of a text that are shown, and of one beside it.
_WHOLE: Final = 100_000
_BESIDE: Final = 2_000
#: Copies that are shown side by side; further ones are listed.
_MOST: Final = 6
#: Words of a text in which the selection is looked for piece by piece.
_MOST_WORDS: Final = 4_000
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
#: What a copy is to the answer, by its origin.
_RELATIONS: Final[Mapping[str, str]] = {Origin.REPLAY.value: "replay", Origin.PEER.value: "mirrored to a peer"}

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """Everything that is stored of one answer."""

    stored: StoredAnswer
    codings: Sequence[VotedCoding]
    descriptions: Mapping[str, Mapping[str, Any]]  #: of the coders, by id
    copies: Sequence[tuple[ExchangeSummary, StoredAnswer | None, Sequence[VotedCoding]]]
    calls: Sequence[ExchangeSummary]  #: of judges
    further: Sequence[ExchangeSummary]  #: copies beyond the first
    estimates: Sequence[EstimateRow]
    findings: Sequence[Finding]  #: whose days hold it


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [web.get("/answers/{id}", _page)]


async def _page(request: web.Request) -> web.Response:
    known_filters(request, ())
    answer = await _read(request)
    config, stored = request.app[CONFIG](), answer.stored
    text, facts = stored_text(stored), stored.facts
    async with open_coders(config, asking=False) as coders:
        readers = {coder.id: ExchangeCoder(coder) for coder in coders}
        codings = [
            _coding(voted, stored, readers.get(voted[0]["coder"]), answer.descriptions) for voted in answer.codings
        ]
    marked = next((coding["taken"] for coding in codings if coding["current"] and coding["taken"] is not None), None)
    return render_page(
        request,
        "answer.html.j2",
        id=str(facts["id"]),
        deployment=facts["deployment"],
        address=deployment_address(facts["deployment"]),
        statement=statement_in(stored),
        text=None if text is None else _marked(text[:_WHOLE], marked or ()),
        has_marks=bool(marked),
        cut=text is not None and len(text) > _WHOLE,
        messages=list(_messages(stored)),
        codings=codings,
        copies=[_copy(*copy, facts["parent"]) for copy in answer.copies],
        further=[_link(exchange) for exchange in answer.further],
        calls=[_link(exchange) for exchange in answer.calls],
        lineage=list(_lineage(answer)),
        findings=[finding_line(finding, request.app[CLOCK]()) for finding in answer.findings],
        facts={name: value for name, value in _facts(stored, config).items() if value not in (None, "")},
        at=facts["at"].strftime("%Y-%m-%d %H:%M:%S"),
    )


@get("/api/answers/{id}", "One answer with its codings, votes, copies and estimates")
async def _show(request: web.Request) -> AnswerBody:
    answer = await _read(request)
    stored = answer.stored
    return AnswerBody(
        id=str(stored.facts["id"]),
        statement=statement_in(stored),
        response=stored_text(stored),
        codings=answer_entries(answer.codings),
        coders=answer.descriptions,
        copies=[
            AnswerCopyEntry(
                id=str(copy.id),
                origin=copy.origin,
                deployment=copy.deployment,
                at=copy.at.isoformat(),
                response=None if copied is None else stored_text(copied),
                codings=answer_entries(codings),
            )
            for copy, copied, codings in answer.copies
        ],
        counted_in=[convert(row, CountedInEntry, from_attributes=True) for _, row in _counted_in(answer)],
        findings=[convert(finding, FindingMentionEntry, from_attributes=True) for finding in answer.findings],
    )


OPERATIONS: Final = (_show,)


async def _read(request: web.Request) -> _Answer:
    """Read the answer in the path.

    Raises
    ------
    ApiError
        404: no stored exchange has this id.
    """
    exchange_id = required_id(request)
    async with transaction(request.app[ENGINE]) as connection:
        stored = (await stored_by_id(connection, [exchange_id])).get(exchange_id)
        if stored is None:
            raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "id")
        related = await read_related(connection, exchange_id, stored.facts["parent"])
        copies = [exchange for exchange in related if exchange.origin != Origin.JUDGE]
        shown = copies[:_MOST]
        ids = [exchange_id, *(exchange.id for exchange in shown)]
        codings = await read_codings(connection, ids)
        copied = await stored_by_id(connection, ids[1:])
        estimates = await _estimates(connection, codings[exchange_id])
        known = {coding["coder"] for coding, _ in codings[exchange_id]}
        return _Answer(
            stored=stored,
            codings=codings[exchange_id],
            descriptions=await read_descriptions(connection, sorted(known)),
            copies=[(exchange, copied.get(exchange.id), codings[exchange.id]) for exchange in shown],
            further=copies[_MOST:],
            calls=[exchange for exchange in related if exchange.origin == Origin.JUDGE],
            estimates=estimates,
            findings=await _findings(connection, stored, known),
        )


async def _findings(connection: AsyncConnection, stored: StoredAnswer, coders: Collection[str]) -> list[Finding]:
    """Read the findings of these coders that may count the answer: only probes are monitored."""
    if stored.facts["origin"] != Origin.PROBE:
        return []
    return await read_findings_on(connection, coders, stored.facts["deployment"], id_time(stored.facts["id"]).date())


async def _estimates(connection: AsyncConnection, codings: Sequence[VotedCoding]) -> list[EstimateRow]:
    """Read the union rates of the coders that have coded the answer, of its deployment and origin."""
    if not codings:
        return []
    coding = codings[0][0]
    return await read_estimates(
        connection, deployment=coding["deployment"], origin=coding["origin"], metric="ber", layer="union", base="full",
        coder=sorted({coding["coder"] for coding, _ in codings}),
    )  # fmt: skip


# -- what is shown -------------------------------------------------------------------------------------------------


def _messages(stored: StoredAnswer) -> Iterator[dict[str, str]]:
    """Yield the messages of the prompt; the request as it is if it has none."""
    if stored.request is None:
        return
    try:
        request = orjson.loads(stored.request)
    except orjson.JSONDecodeError:
        request = None
    messages = request.get("messages") if isinstance(request, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        yield {"role": "request", "text": stored.request[:_WHOLE].decode("utf-8", "replace")}
        return
    for message in messages:
        content = message.get("content")
        text = content if isinstance(content, str) else orjson.dumps(content).decode()
        yield {"role": str(message.get("role", "message"))[:40], "text": text[:_WHOLE]}


def _coding(
    voted: VotedCoding,
    stored: StoredAnswer,
    reader: ExchangeCoder | None,
    descriptions: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    coding, votes = voted
    passage = None if reader is None else reader.passage(stored)
    text = stored_text(stored)
    described = descriptions.get(coding["coder"])
    return {
        **labels_of(coding),
        "coder": coding["coder"],
        "rubric": coding["rubric"],
        "current": reader is not None,
        "at": coding["coded_at"].strftime("%Y-%m-%d %H:%M:%S"),
        "via": coding["sel_via"],
        "passage": None if passage is None else passage.text[:_WHOLE],
        "taken": None if passage is None or text is None else taken_spans(text, passage.text),
        "votes": votes,
        "versions": None if described is None else orjson.dumps(described, option=orjson.OPT_INDENT_2).decode(),
    }


def taken_spans(text: str, left: str) -> list[Span] | None:
    """Find the parts of a text that were taken away so that ``left`` remained; None if it is no part of the text.

    Examples
    --------
    >>> taken_spans("A. It is false.", "It is false."), taken_spans("Because. Answer: no", "Because.")
    ([(0, 3)], [(8, 19)])
    >>> taken_spans("He says A. Then B.", "He says Then B."), taken_spans("yes", "no")
    ([(7, 10)], None)
    """
    place = text.find(left)
    if place >= 0:
        return _worded(text, [(0, place), (place + len(left), len(text))])
    after = _same_end(text, left)
    before = len(left) - after
    if text.startswith(left[:before]):
        return _worded(text, [(before, len(text) - after)])
    return _pieces(text, left)


def _same_end(text: str, left: str) -> int:
    """Return the number of last characters that two texts have in common."""
    most = min(len(text), len(left))
    return next((n for n in range(most) if text[-1 - n] != left[-1 - n]), most)


def _pieces(text: str, left: str) -> list[Span] | None:
    """Compare word by word; None if a word of ``left`` is not in the text at its place, or the text is too long."""
    words, kept = _WORDS.findall(text), _WORDS.findall(left)
    if len(words) > _MOST_WORDS:
        return None
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    spans = []
    for kind, start, end, _, _ in SequenceMatcher(None, words, kept, autojunk=False).get_opcodes():
        if kind in {"insert", "replace"}:
            return None
        if kind == "delete":
            spans.append((starts[start], starts[end]))
    return _worded(text, spans)


def _worded(text: str, spans: Sequence[Span]) -> list[Span]:
    return [(start, end) for start, end in spans if text[start:end].strip()]


def _marked(text: str, spans: Sequence[Span]) -> Markup:
    parts, place = [], 0
    for start, end in spans:
        parts += [escape(text[place:start]), Markup("<mark>{}</mark>").format(text[start:end])]
        place = end
    return Markup("").join([*parts, escape(text[place:])])


def _copy(
    exchange: ExchangeSummary, stored: StoredAnswer | None, codings: Sequence[VotedCoding], parent: UUID | None
) -> dict[str, Any]:
    text = None if stored is None else stored_text(stored)
    condition = (stored.planned_call or {}) if stored is not None else {}
    return {
        **_link(exchange),
        "relation": "what this one repeats"
        if exchange.id == parent
        else _RELATIONS.get(exchange.origin, exchange.origin),
        "condition": " · ".join(str(condition[name]) for name in FACTORS if condition.get(name)),
        "text": None if text is None else text[:_BESIDE] + ("…" if len(text) > _BESIDE else ""),
        "labels": None if not codings else labels_of(codings[0][0]),
    }


def _link(exchange: ExchangeSummary) -> dict[str, Any]:
    return {
        "id": str(exchange.id),
        "origin": exchange.origin,
        "deployment": exchange.deployment,
        "at": f"{exchange.at:%Y-%m-%d %H:%M}",
    }


def _lineage(answer: _Answer) -> Iterator[dict[str, Any]]:
    """Yield the estimates that count the answer, each with its value and the list of all that it counts."""
    for coding, row in _counted_in(answer):
        yield {
            "window": row.window,
            "condition": condition_words(row.condition),
            "coder": coding["coder"],
            "cell": estimate_cell_of(row),
            "n": row.n,
        }


def _counted_in(answer: _Answer) -> Iterator[tuple[Mapping[str, Any], EstimateRow]]:
    for coding, _ in answer.codings:
        if coding["uncoded"] is not None:
            continue
        conditions = _conditions(coding)
        for row in answer.estimates:
            is_in_time = row.since <= coding["hour"] and coding["coded_at"] <= row.as_of
            if row.coder == coding["coder"] and row.condition in conditions and is_in_time:
                yield coding, row


def _conditions(coding: Mapping[str, Any]) -> set[str]:
    """Return the names of the conditions of estimates that a coding counts in."""
    if coding["origin"] == Origin.CLIENT:
        return {str(coding["audit"])}
    levels = tuple(coding[name] for name in FACTORS)
    names = {ALL, "/".join(map(str, levels)), *(f"{name}={coding[name]}" for name in (*FACTORS, CATEGORY))}
    return names | ({AT_BASELINE} if levels == BASELINE else set())


def _facts(stored: StoredAnswer, config: Config) -> dict[str, Any]:
    facts, condition = stored.facts, stored.planned_call or {}
    return {
        "origin": facts["origin"],
        "model": facts["model"],
        "route": facts["route"],
        "outcome": f"{facts['outcome']} ({facts['status']})",
        "condition": " / ".join(str(condition[name]) for name in FACTORS if condition.get(name)),
        "template": condition.get("template_id"),
        "draw": condition.get("draw"),
        "planned call": facts["ref"],
        "captured with probability": f"{facts['inclusion']:g}",
        "prompt tokens": facts["prompt_tokens"],
        "completion tokens": facts["completion_tokens"],
        "cost": _cost(facts, config),
        "total time": f"{facts['total_us'] / 1000:,.0f} ms",
        "configuration": facts["config_hash"],
        "request id": facts["request_id"],
    }


def _cost(facts: Mapping[str, Any], config: Config) -> str | None:
    """Return what the answer cost at the price that the deployment has now; None if that is not known."""
    declared = next((deployment for deployment in config.deployments if deployment.name == facts["deployment"]), None)
    tokens = facts["prompt_tokens"], facts["completion_tokens"]
    if declared is None or declared.price is None or None in tokens:
        return None
    return f"{(tokens[0] * declared.price.input + tokens[1] * declared.price.output) / 1e6:.6f} USD at today's price"

"""Make the request for one parent and one format. No I/O: the same arguments give the same request.

A known statement is asked in canonical words, so that nothing but the format differs. Members that belong to the
application's own question (messages, tools, answer schema, stop words) are removed; sampling parameters (temperature
and others) are kept. All other parents are asked with their own request (``rewriting``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson

from auditor.domain.condition import Condition, Task
from auditor.domain.exchange import Origin
from auditor.domain.question import Message
from auditor.domain.statement import Statement
from auditor.instrument.asking import ask
from auditor.instrument.pool import missing_for
from auditor.instrument.templates import Template, canonical_of
from replay.counterfactual.edits import RefusalReason, RefusedSwap, SwappedTexts
from replay.counterfactual.lexicon import SwapLexicon
from replay.counterfactual.swap import read_swap, swap_text
from replay.formats import ReplayFormat
from replay.parents import Parent, RouteProfile
from replay.rewriting import Blocker, RewriteResult, RewrittenRequest, raised_limits, reframe, swap_request

#: The call sets the model. Streams and multiple answers are not supported.
_DROPPED: Final = frozenset({"model", "stream", "stream_options", "n"})


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteContext:
    """The inputs of the rewriting of clients' requests."""

    applications: Mapping[str, RouteProfile]  #: by route
    lexicon: SwapLexicon | None = None  #: required for a swap
    seed: int = 0  #: seed of the names that swaps draw


def rewrite_client_request(
    parent: Parent, each: ReplayFormat, request: Mapping[str, Any], context: RewriteContext
) -> RewriteResult:
    """Rewrite a client's stored request in a format, or return why it cannot be rewritten."""
    if parent.redacted:
        return Blocker.REDACTED
    if not request.get("messages"):
        return Blocker.NO_MESSAGES
    if each.swap:
        return _swapped(parent, each.swap, request, context)
    if not each.levels:
        return RewrittenRequest(request=request)
    options = context.applications[parent.route].options
    # As with a choice about a statement, about half of the parents get the other order.
    return reframe(request, each, options if parent.id.int % 2 else options[::-1])


def sendable_members(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request that are sent: all except the model, the stream and the number of answers."""
    return {name: value for name, value in request.items() if name not in _DROPPED}


def _swapped(parent: Parent, written: str, request: Mapping[str, Any], context: RewriteContext) -> RewriteResult:
    assert context.lexicon is not None
    swap = read_swap(written, context.lexicon)
    outcome = swap_request(request, swap, context.lexicon, seed=context.seed)
    if not isinstance(outcome, RewrittenRequest):
        return outcome
    # Answers about one group must not be compared with a proposition about the other.
    proposition = context.applications[parent.route].profile.proposition
    text = proposition(request)
    if text is not None and text == proposition(outcome.request):
        untouched = swap_text(text, swap, context.lexicon, seed=context.seed)
        if isinstance(untouched, SwappedTexts) or untouched.reason is not RefusalReason.NOTHING_TO_SWAP:
            return Blocker.PROPOSITION
    return outcome


def block_reason(outcome: RewriteResult) -> str | None:
    """Return why a request was not rewritten; ``None`` if it was."""
    if isinstance(outcome, RewrittenRequest):
        return None
    return str(outcome.reason if isinstance(outcome, RefusedSwap) else outcome)


#: Members of a chat request that control sampling, not the content of the answer.
_KEPT: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "reasoning_effort",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "max_tokens",
    "max_completion_tokens",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call: a parent in one format."""

    ref: str
    parent: Parent
    format: ReplayFormat
    deployment: str
    model: str | None = None  #: what is asked for; ``None``: as the deployment is usually asked


def replay_ref(replay_id: str, parent: UUID, number: int) -> str:
    """Return the name of a planned instance, from its parent and the number of its format: at most 64 characters.

    Examples
    --------
    >>> replay_ref("rpl-0123456789ab", UUID(int=1), 2)
    'rpl-0123456789ab/00000000000000000000000000000001/2'
    """
    return f"{replay_id}/{parent.hex}/{number}"


def read_ref(ref: str) -> tuple[UUID, int]:
    """Parse the parent and the number of the format from the name of a planned instance.

    Examples
    --------
    >>> read_ref("rpl-0123456789ab/00000000000000000000000000000001/2")
    (UUID('00000000-0000-0000-0000-000000000001'), 2)
    """
    _, parent, number = ref.rsplit("/", 2)
    return UUID(hex=parent), int(number)


def asks_statement(parent: Parent, each: ReplayFormat) -> bool:
    """Return whether a format asks about the parent's statement, and not with the client's own request.

    The options of a client's question are in its audit profile, not in its proposition.
    """
    if parent.origin is Origin.PROBE:
        return True
    return parent.statement is not None and each.task not in {None, Task.CTO}


def condition_of(parent: Parent, each: ReplayFormat) -> Condition:
    """Return the condition of a replay: the parent's, changed by the format."""
    return each.of(parent.condition)


def template_of(parent: Parent, each: ReplayFormat) -> Template:
    """Return the template of a replay: a canonical one, or the parent's own if nothing changes.

    If the canonical words have options, about half of the parents get the other order.
    """
    condition = condition_of(parent, each)
    if parent.template is not None and condition == parent.condition:
        return parent.template
    orders = canonical_of(condition)
    return orders[parent.id.int % len(orders)]


def find_blockers(
    parent: Parent, formats: Sequence[ReplayFormat], request: Mapping[str, Any], context: RewriteContext
) -> dict[ReplayFormat, str]:
    """Return the formats in which a parent cannot be asked, with reasons; of two equal formats the first is asked."""
    reasons: dict[ReplayFormat, str] = {}
    first_formats: dict[object, ReplayFormat] = {}
    for each in formats:
        first = first_formats.setdefault(_difference(parent, each), each)
        reason = f"same_as_{first.key}" if first is not each else _blocker(parent, each, request, context)
        if reason is not None:
            reasons[each] = reason
    return reasons


def _difference(parent: Parent, each: ReplayFormat) -> object:
    condition = condition_of(parent, each)
    return condition if asks_statement(parent, each) and not each.swap else (condition, each.task, each.swap)


def _blocker(parent: Parent, each: ReplayFormat, request: Mapping[str, Any], context: RewriteContext) -> str | None:
    if not asks_statement(parent, each):
        return block_reason(rewrite_client_request(parent, each, request, context))
    if each.swap:
        return "swap_of_probe"
    condition = condition_of(parent, each)
    if parent.task is not None and parent.template is None and condition == parent.condition:
        return "template_gone"
    missing = missing_for(condition.task, _statement(parent))
    return f"statement_lacks_{missing[0]}" if missing else None


def _statement(parent: Parent) -> Statement:
    assert parent.statement is not None
    return parent.statement


def messages_of(parent: Parent, each: ReplayFormat) -> tuple[Message, ...]:
    """Return the messages that ask the parent's statement in a format."""
    return ask(_statement(parent), template_of(parent, each))


def request_body(call: Call, request: bytes | None, context: RewriteContext) -> dict[str, Any]:
    """Return the request of a call that is not blocked; without ``model`` if the call names none.

    Parameters
    ----------
    call
        The planned call.
    request
        The parent's own request as stored; ``None`` if it has been dropped since: then none of its members is used.
    context
        What is needed to rewrite the request.
    """
    read = read_object(request)
    if asks_statement(call.parent, call.format):
        messages = [
            {"role": message.role, "content": message.content} for message in messages_of(call.parent, call.format)
        ]
        body = {"messages": messages, **_manner(read)}
    else:
        body = sendable_members(_rewritten(call, read, context))
    return body if call.model is None else {**body, "model": call.model}


def _rewritten(call: Call, request: Mapping[str, Any], context: RewriteContext) -> Mapping[str, Any]:
    outcome = rewrite_client_request(call.parent, call.format, request, context)
    assert isinstance(outcome, RewrittenRequest)
    return outcome.request


def read_object(body: bytes | None) -> Mapping[str, Any]:
    """Read a stored request. The result is empty if it is not a JSON object."""
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _manner(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: request[name] for name in _KEPT if request.get(name) is not None} | raised_limits(request)

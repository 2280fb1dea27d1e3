"""From a parent and a format to a request. Pure: the same parent, format and means give the same request.

A statement that is known is put in canonical words, so that nothing but the format differs, and what belongs to the
application's own question (its messages, tools, answer schema, stop words) is left out; how the deployment was made to
answer (temperature and its kin) is taken over. Everything else is the client's own request (``own_request``).
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
from replay.formats import Format
from replay.pick import Parent
from replay.rewriting.own_request import Means, put_otherwise, reason_of, whole
from replay.rewriting.request import Rewritten, raised_limits

#: Members of a chat request that say how to answer, not what.
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
    """One parent to be asked in one format."""

    ref: str
    parent: Parent
    format: Format
    deployment: str
    model: str | None = None  #: what is asked for; ``None``: as the deployment is usually asked


def replay_ref(replay_id: str, parent: UUID, number: int) -> str:
    """Name one planned instance by its parent and the number of its format: at most 64 characters, always the same.

    Examples
    --------
    >>> replay_ref("rpl-0123456789ab", UUID(int=1), 2)
    'rpl-0123456789ab/00000000000000000000000000000001/2'
    """
    return f"{replay_id}/{parent.hex}/{number}"


def read_ref(ref: str) -> tuple[UUID, int]:
    """Read the parent and the format's number back out of a planned instance's name.

    Examples
    --------
    >>> read_ref("rpl-0123456789ab/00000000000000000000000000000001/2")
    (UUID('00000000-0000-0000-0000-000000000001'), 2)
    """
    _, parent, number = ref.rsplit("/", 2)
    return UUID(hex=parent), int(number)


def puts_statement(parent: Parent, each: Format) -> bool:
    """Tell whether a format asks about the parent's statement, in words of ours; else it asks the client's own.

    What there is to choose from stands in a client's profile, not in its proposition.
    """
    if parent.origin is Origin.PROBE:
        return True
    return parent.statement is not None and each.task not in {None, Task.CTO}


def condition_of(parent: Parent, each: Format) -> Condition:
    """Give the condition of a replay: the parent's own but for what the format says."""
    return each.of(parent.condition)


def template_of(parent: Parent, each: Format) -> Template:
    """Give the words of a replay: canonical ones, and the parent's own where nothing is to differ.

    Where canonical words have options, about half of the parents get the other order.
    """
    condition = condition_of(parent, each)
    if parent.template is not None and condition == parent.condition:
        return parent.template
    orders = canonical_of(condition)
    return orders[parent.id.int % len(orders)]


def hindrances(
    parent: Parent, formats: Sequence[Format], request: Mapping[str, Any], means: Means
) -> dict[Format, str]:
    """Say in which of the formats a parent cannot be asked, and why; of two that ask it the same, the first counts."""
    found: dict[Format, str] = {}
    asked: dict[object, Format] = {}
    for each in formats:
        first = asked.setdefault(_difference(parent, each), each)
        reason = f"same_as_{first.key}" if first is not each else _hindrance(parent, each, request, means)
        if reason is not None:
            found[each] = reason
    return found


def _difference(parent: Parent, each: Format) -> object:
    condition = condition_of(parent, each)
    return condition if puts_statement(parent, each) and not each.swap else (condition, each.task, each.swap)


def _hindrance(parent: Parent, each: Format, request: Mapping[str, Any], means: Means) -> str | None:
    if not puts_statement(parent, each):
        return reason_of(put_otherwise(parent, each, request, means))
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


def messages_of(parent: Parent, each: Format) -> tuple[Message, ...]:
    """Put the parent's statement in a format."""
    return ask(_statement(parent), template_of(parent, each))


def body_of(call: Call, request: bytes | None, means: Means) -> dict[str, Any]:
    """Give the request of a call, which nothing hinders; without ``model`` where the call names none.

    Parameters
    ----------
    call
        What is asked.
    request
        The parent's own request as stored; ``None`` where it has been dropped since: nothing is taken over then.
    means
        What it takes to put it otherwise.
    """
    read = read_object(request)
    if puts_statement(call.parent, call.format):
        messages = [{"role": one.role, "content": one.content} for one in messages_of(call.parent, call.format)]
        body = {"messages": messages, **_manner(read)}
    else:
        body = whole(_own(call, read, means))
    return body if call.model is None else {**body, "model": call.model}


def _own(call: Call, request: Mapping[str, Any], means: Means) -> Mapping[str, Any]:
    outcome = put_otherwise(call.parent, call.format, request, means)
    assert isinstance(outcome, Rewritten)
    return outcome.request


def read_object(body: bytes | None) -> Mapping[str, Any]:
    """Read a stored request; one that is no JSON object says nothing."""
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _manner(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asked[name] for name in _KEPT if asked.get(name) is not None} | raised_limits(asked)

"""Read clients' stored answers with the arm of each, for comparisons of stored traffic.

An arm is a value of a tag, a route, the requested model, or a system prompt. A system prompt is identified by a digest;
its text is not copied.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from auditor.store.exchanges import exchange_content, exchanges
from replay.calls import read_object
from replay.selection import ExchangeSelection
from replay.store import CURSOR, bounds

_TAG: Final = "tag."
#: The groupings besides the values of a tag.
_COLUMNS: Final = ("route", "model")
SYSTEM: Final = "system"
NO_SYSTEM: Final = "no-system"
_SYSTEM_ROLES: Final = frozenset({"system", "developer"})


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficAnswer:
    """One stored answer to a client."""

    id: UUID
    deployment: str
    route: str
    arm: str
    question: str  #: digest of the proposition; empty if the profile names none
    inclusion: float
    completion_tokens: int | None


@dataclass(kw_only=True, slots=True)
class Traffic:
    """The traffic that matches a selection."""

    answers: list[TrafficAnswer]
    left_out: Counter[str]
    systems: dict[str, str]  #: the text of system prompts by arm; shown to the user of the command, written to no file


def read_grouping(text: str) -> str:
    """Parse the grouping that defines the arms: ``tag.NAME``, ``route``, ``model`` or ``system``.

    Raises
    ------
    UsageError
        It is none of these.
    """
    by = text.strip()
    if by in (*_COLUMNS, SYSTEM) or (by.startswith(_TAG) and by != _TAG):
        return by
    raise UsageError(f"--by {text!r} is not one of tag.NAME, {', '.join(_COLUMNS)}, {SYSTEM}")


async def read_traffic(
    connection: AsyncConnection,
    selection: ExchangeSelection,
    by: str,
    propositions: Mapping[str, Callable[[object], str | None] | None],
) -> Traffic:
    """Read the complete client exchanges that match a selection, the oldest first.

    Parameters
    ----------
    propositions
        Function that finds the question in a request, by route; ``None`` if the profile names no proposition. Other
        routes have no audit profile, and are left out.
    """
    traffic = Traffic(answers=[], left_out=Counter(), systems={})
    async for row in _rows(connection, selection):
        if row["route"] not in propositions:
            traffic.left_out["no_audit_profile"] += 1
            continue
        request = read_object(row["request"]) if row["request"] is not None else None
        proposition = propositions[row["route"]]
        question = proposition(request) if proposition is not None else ""
        arm = _side(row, request, by, traffic.systems)
        if question is None or arm is None:
            reason = "no_proposition" if question is None else ("no_content" if by == SYSTEM else "no_tag")
            traffic.left_out[reason] += 1
            continue
        traffic.answers.append(
            TrafficAnswer(
                id=row["id"],
                deployment=row["deployment"],
                route=row["route"],
                arm=arm,
                question=_digest(question, 8) if question else "",
                inclusion=row["inclusion"],
                completion_tokens=row["completion_tokens"],
            )
        )
    return traffic


async def _rows(connection: AsyncConnection, selection: ExchangeSelection) -> AsyncIterator[Mapping[Any, Any]]:
    of_clients = (exchanges.c.origin == Origin.CLIENT, exchanges.c.outcome == "complete")
    query = (
        select(*(exchanges.c[name] for name in _FACTS), exchange_content.c.request)
        .select_from(exchanges)
        .outerjoin(exchange_content, exchange_content.c.id == exchanges.c.id)
        .where(*bounds(selection), *of_clients)
        .order_by(exchanges.c.id)
    )
    async for row in (await connection.stream(query.execution_options(yield_per=CURSOR))).mappings():
        yield row


_FACTS: Final = ("id", "deployment", "route", "model", "tags", "inclusion", "completion_tokens")


def _side(row: Mapping[Any, Any], request: object, by: str, systems: dict[str, str]) -> str | None:
    if by.startswith(_TAG):
        value: str | None = (row["tags"] or {}).get(by.removeprefix(_TAG))
        return value
    if by != SYSTEM:
        return str(row[by])
    words = system_of(request)
    if not words:
        return words if words is None else NO_SYSTEM
    arm = f"system-{_digest(words, 4)}"
    systems.setdefault(arm, words)
    return arm


def system_of(request: object) -> str | None:
    """Return an application's system prompt; ``None`` if the request is not stored.

    Examples
    --------
    >>> system_of({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tea?"}]})
    'Be brief.'
    """
    if not isinstance(request, dict):
        return None
    messages = request.get("messages")
    turns = messages if isinstance(messages, list) else []
    parts = [turn.get("content") for turn in turns if isinstance(turn, dict) and turn.get("role") in _SYSTEM_ROLES]
    return "\n".join(filter(None, map(_words, [request.get("instructions"), *parts])))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n".join(text.strip() for text in texts if isinstance(text, str))


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()

"""From stored exchanges to parents: those that can be asked again, and why the others cannot.

Pure; ``stored`` reads the candidates, ``drawing`` takes a sample of them, ``rewrite`` puts the question anew. A parent
needs a statement that is known and its own request: a probe's statement stands in its plan, a client's is what the
route's audit profile calls the proposition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditor.config import Config
from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.domain.exchange import Origin
from auditor.domain.statement import Statement
from auditor.instrument import pool
from auditor.instrument.pool import statement_of
from auditor.live.profiles import Profile
from auditor.rows import BadRow

#: Clients may ask by other endpoints, but a format's messages are a chat.
ENDPOINT: Final = "chat/completions"


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One stored exchange that fits the selection. ``asked`` and ``record`` are its plan's: only probes have them."""

    id: UUID
    at: datetime
    origin: Origin
    endpoint: str
    route: str
    deployment: str
    model: str
    inclusion: float  #: probability with which it is here, (0, 1]: that of its being kept, times that of its draw
    truncated: bool
    has_content: bool
    asked: Mapping[str, Any] | None = None
    record: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parent:
    """One stored exchange that will be asked again."""

    id: UUID
    origin: Origin
    deployment: str
    model: str  #: what the request asked for
    statement: Statement
    task: Task | None = None  #: as first asked; an application's question is in no format
    condition: Condition = BASELINE  #: a client's question has none; its replay is asked at the baseline
    draw: int = 0
    route: str  #: whose audit profile reads a client's answer
    inclusion: float = 1.0  #: probability with which it was kept and drawn: it stands for ``1 / inclusion`` exchanges


def refusal(config: Config) -> Callable[[Candidate], str | None]:
    """Make the rule that says why a candidate cannot be asked again; ``None`` where it can."""
    deployments = {one.name for one in config.deployments}
    routes = {route.model for route in config.routes}
    return lambda one: _reason(one, deployments, routes)


def _reason(one: Candidate, deployments: set[str], routes: set[str]) -> str | None:
    if one.deployment not in deployments:
        return "deployment_gone"
    if one.model not in routes and "*" not in routes:
        return "route_gone"
    if one.endpoint != ENDPOINT:
        return "not_a_chat"
    if not one.has_content:
        return "no_content"
    if one.truncated:
        return "copy_truncated"
    return None


def parent_of_probe(one: Candidate) -> Parent | None:
    """Make a parent of a probe; ``None`` where its plan's statement cannot be read."""
    assert one.asked is not None
    statement = read_statement(one.record)
    if statement is None:
        return None
    task = Task(one.asked["task"])
    return Parent(
        id=one.id,
        origin=one.origin,
        deployment=one.deployment,
        model=one.model,
        statement=statement,
        task=task,
        condition=Condition(
            task=task,
            perspective=Perspective(one.asked["perspective"]),
            role=Role(one.asked["role"]),
            sentiment=Sentiment(one.asked["sentiment"]),
        ),
        draw=one.asked["draw"],
        route=one.route,
        inclusion=one.inclusion,
    )


def parent_of_client(one: Candidate, request: object, profile: Profile) -> Parent | None:
    """Make a parent of client traffic; ``None`` where its request holds no proposition."""
    proposition = profile.proposition(request)
    if proposition is None:
        return None
    return Parent(
        id=one.id,
        origin=one.origin,
        deployment=one.deployment,
        model=one.model,
        statement=Statement(id=f"exchange/{one.id}", statement=proposition),
        route=one.route,
        inclusion=one.inclusion,
    )


def read_statement(record: Mapping[str, Any] | None) -> Statement | None:
    """Read a stored record; ``None`` where there is none that this release can read."""
    try:
        return statement_of(dict(record)) if record else None
    except BadRow:
        return None


def missing_for(parent: Parent, task: Task) -> str | None:
    """Say why a parent cannot be asked in a format: what its statement lacks. ``None`` where it can."""
    missing = pool.missing_for(task, parent.statement)
    return f"statement_lacks_{missing[0]}" if missing else None

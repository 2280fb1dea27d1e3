"""Make parents of stored exchanges, or return the reason why they cannot be asked again. No I/O.

A probe's statement is in its plan. A client's statement is the proposition of the route's audit profile; if the profile
names none, the client's own request is asked again. ``store`` reads the candidates, ``selection`` draws a sample of
them, ``calls`` makes the requests.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditor.coding.profiles import AuditProfile
from auditor.config import Config
from auditor.config.routes import ANY_MODEL
from auditor.documents.jsonl import BadRow
from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.domain.exchange import Origin
from auditor.domain.statement import Statement
from auditor.instrument.pool import statement_of
from auditor.instrument.templates import Template, find_template

#: The endpoint of replays. Clients may use others, but a format's messages are a chat.
ENDPOINT: Final = "chat/completions"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayCandidate:
    """One stored exchange that matches the selection. Only probes have ``asked`` and ``record``, from their plan."""

    id: UUID
    at: datetime
    origin: Origin
    endpoint: str
    route: str
    deployment: str
    model: str
    inclusion: float  #: inclusion probability, (0, 1]: the probability of capture times that of the draw
    truncated: bool
    has_content: bool
    redacted: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    asked: Mapping[str, Any] | None = None
    record: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parent:
    """One stored exchange that will be asked again."""

    id: UUID
    origin: Origin
    deployment: str
    model: str  #: what the request asked for
    statement: Statement | None = None  #: the statement; ``None`` for a client whose profile names no proposition
    task: Task | None = None  #: as first asked; ``None`` for an application's own question
    condition: Condition = BASELINE  #: a client's question has none; formats then start from the baseline
    template: Template | None = None  #: the template of a probe; ``None`` if this release no longer has it
    draw: int = 0
    route: str  #: whose audit profile reads a client's answer
    inclusion: float = 1.0  #: inclusion probability: the parent represents ``1 / inclusion`` exchanges
    redacted: bool = False  #: whether its stored copy was redacted
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteProfile:
    """The fields of a route's audit profile that a replay needs."""

    profile: AuditProfile
    takes_stance: bool  #: whether the profile names a proposition
    options: tuple[str, ...] = ()  #: the options of an answer, if the profile lists them


def refusal(config: Config, to: str | None = None) -> Callable[[ReplayCandidate], str | None]:
    """Return a function that gives the reason why a candidate cannot be asked again, or ``None``.

    ``to`` is the deployment that is asked instead of the original ones. Client text is sent only to deployments that
    its route allows.
    """
    deployments = {one.name for one in config.deployments}
    allowed = {route.model: {one.name for one in route.deployments} | {*route.peers} for route in config.routes}

    def reason(one: ReplayCandidate) -> str | None:
        if to is None:
            nobody = _nobody(one, deployments, allowed.keys())
        else:
            shown = one.origin is Origin.PROBE or to == one.deployment or to in allowed.get(one.route, ())
            nobody = None if shown else "not_a_peer"
        return nobody or _unreadable(one)

    return reason


def _nobody(one: ReplayCandidate, deployments: Container[str], models: Container[str]) -> str | None:
    """Return the reason why the original deployment cannot be asked any more."""
    if one.deployment not in deployments:
        return "deployment_gone"
    return "route_gone" if one.model not in models and ANY_MODEL not in models else None


def _unreadable(one: ReplayCandidate) -> str | None:
    if one.endpoint != ENDPOINT:
        return "not_a_chat"
    if not one.has_content:
        return "no_content"
    return "copy_truncated" if one.truncated else None


def parent_of_probe(one: ReplayCandidate) -> Parent | None:
    """Make a parent of a probe; return ``None`` if its plan's statement cannot be read."""
    assert one.asked is not None
    statement = read_statement(one.record)
    if statement is None:
        return None
    task = Task(one.asked["task"])
    return replace(
        _parent(one),
        statement=statement,
        task=task,
        condition=Condition(
            task=task,
            perspective=Perspective(one.asked["perspective"]),
            role=Role(one.asked["role"]),
            sentiment=Sentiment(one.asked["sentiment"]),
        ),
        template=_template(one.asked["template_id"]),
        draw=one.asked["draw"],
    )


def parent_of_client(one: ReplayCandidate, request: object, application: RouteProfile) -> Parent | None:
    """Make a parent of client traffic; return ``None`` if its profile names a proposition and the request has none."""
    if not application.takes_stance:
        return _parent(one)
    proposition = application.profile.proposition(request)
    if proposition is None:
        return None
    return replace(_parent(one), statement=Statement(id=f"exchange/{one.id}", statement=proposition))


def _parent(one: ReplayCandidate) -> Parent:
    return Parent(
        id=one.id,
        origin=one.origin,
        deployment=one.deployment,
        model=one.model,
        route=one.route,
        inclusion=one.inclusion,
        redacted=one.redacted,
        prompt_tokens=one.prompt_tokens,
        completion_tokens=one.completion_tokens,
    )


def _template(template_id: str) -> Template | None:
    try:
        return find_template(template_id)
    except KeyError:
        return None


def read_statement(record: Mapping[str, Any] | None) -> Statement | None:
    """Read a stored record; ``None`` if there is none or this release cannot read it."""
    try:
        return statement_of(dict(record)) if record else None
    except BadRow:
        return None

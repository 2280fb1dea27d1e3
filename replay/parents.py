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
    """One stored exchange that matches the selection. Only probes have ``planned_call`` and ``record``."""

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
    planned_call: Mapping[str, Any] | None = None
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
    deployments = {deployment.name for deployment in config.deployments}
    allowed = {route.model: {entry.name for entry in route.deployments} | {*route.peers} for route in config.routes}

    def reason(candidate: ReplayCandidate) -> str | None:
        if to is None:
            nobody = _nobody(candidate, deployments, allowed.keys())
        else:
            shown = (
                candidate.origin is Origin.PROBE or to == candidate.deployment or to in allowed.get(candidate.route, ())
            )
            nobody = None if shown else "not_a_peer"
        return nobody or _unreadable(candidate)

    return reason


def _nobody(candidate: ReplayCandidate, deployments: Container[str], models: Container[str]) -> str | None:
    """Return the reason why the original deployment cannot be asked any more."""
    if candidate.deployment not in deployments:
        return "deployment_gone"
    return "route_gone" if candidate.model not in models and ANY_MODEL not in models else None


def _unreadable(candidate: ReplayCandidate) -> str | None:
    if candidate.endpoint != ENDPOINT:
        return "not_a_chat"
    if not candidate.has_content:
        return "no_content"
    return "copy_truncated" if candidate.truncated else None


def parent_of_probe(candidate: ReplayCandidate) -> Parent | None:
    """Make a parent of a probe; return ``None`` if its plan's statement cannot be read."""
    assert candidate.planned_call is not None
    statement = read_statement(candidate.record)
    if statement is None:
        return None
    task = Task(candidate.planned_call["task"])
    return replace(
        _parent(candidate),
        statement=statement,
        task=task,
        condition=Condition(
            task=task,
            perspective=Perspective(candidate.planned_call["perspective"]),
            role=Role(candidate.planned_call["role"]),
            sentiment=Sentiment(candidate.planned_call["sentiment"]),
        ),
        template=_template(candidate.planned_call["template_id"]),
        draw=candidate.planned_call["draw"],
    )


def parent_of_client(candidate: ReplayCandidate, request: object, application: RouteProfile) -> Parent | None:
    """Make a parent of client traffic; return ``None`` if its profile names a proposition and the request has none."""
    if not application.takes_stance:
        return _parent(candidate)
    proposition = application.profile.proposition(request)
    if proposition is None:
        return None
    return replace(_parent(candidate), statement=Statement(id=f"exchange/{candidate.id}", statement=proposition))


def _parent(candidate: ReplayCandidate) -> Parent:
    return Parent(
        id=candidate.id,
        origin=candidate.origin,
        deployment=candidate.deployment,
        model=candidate.model,
        route=candidate.route,
        inclusion=candidate.inclusion,
        redacted=candidate.redacted,
        prompt_tokens=candidate.prompt_tokens,
        completion_tokens=candidate.completion_tokens,
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

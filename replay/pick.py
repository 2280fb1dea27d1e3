"""From stored exchanges to parents: those that can be asked again, and why the others cannot.

Pure; ``stored`` reads the candidates, ``drawing`` takes a sample of them, ``rewriting`` puts the question anew. A
probe's statement stands in its plan. A client's is what the route's audit profile calls the proposition; where it names
none, a client has none, and is asked again in its own words.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditor.config import Config
from auditor.config.models import ANY_MODEL
from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.domain.exchange import Origin
from auditor.domain.statement import Statement
from auditor.instrument.pool import statement_of
from auditor.instrument.templates import Template, find_template
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
    statement: Statement | None = None  #: what was asked about; ``None`` for a client whose profile names nothing
    task: Task | None = None  #: as first asked; an application's question is in no format
    condition: Condition = BASELINE  #: a client's question has none; formats set their levels off the baseline
    template: Template | None = None  #: the words of a probe; ``None`` where this release has them no longer
    draw: int = 0
    route: str  #: whose audit profile reads a client's answer
    inclusion: float = 1.0  #: probability with which it was kept and drawn: it stands for ``1 / inclusion`` exchanges
    redacted: bool = False  #: whether something was taken out of its stored copy
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Application:
    """How the traffic of one route is read, as far as asking it again needs it."""

    profile: Profile
    takes_stance: bool  #: whether the profile names a proposition
    options: tuple[str, ...] = ()  #: what an answer chooses from, where the profile lists it


def refusal(config: Config, to: str | None = None) -> Callable[[Candidate], str | None]:
    """Make the rule that says why a candidate cannot be asked again; ``None`` where it can.

    ``to`` is who is asked instead of those which answered first. A client's words go where its route lets them go.
    """
    deployments = {one.name for one in config.deployments}
    allowed = {route.model: {one.name for one in route.deployments} | {*route.peers} for route in config.routes}

    def reason(one: Candidate) -> str | None:
        if to is None:
            nobody = _nobody(one, deployments, allowed.keys())
        else:
            shown = one.origin is Origin.PROBE or to == one.deployment or to in allowed.get(one.route, ())
            nobody = None if shown else "not_a_peer"
        return nobody or _unreadable(one)

    return reason


def _nobody(one: Candidate, deployments: Container[str], models: Container[str]) -> str | None:
    """Say why whoever answered first cannot be asked any more."""
    if one.deployment not in deployments:
        return "deployment_gone"
    return "route_gone" if one.model not in models and ANY_MODEL not in models else None


def _unreadable(one: Candidate) -> str | None:
    if one.endpoint != ENDPOINT:
        return "not_a_chat"
    if not one.has_content:
        return "no_content"
    return "copy_truncated" if one.truncated else None


def parent_of_probe(one: Candidate) -> Parent | None:
    """Make a parent of a probe; ``None`` where its plan's statement cannot be read."""
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


def parent_of_client(one: Candidate, request: object, application: Application) -> Parent | None:
    """Make a parent of client traffic; ``None`` where its request holds no proposition, and the profile names one."""
    if not application.takes_stance:
        return _parent(one)
    proposition = application.profile.proposition(request)
    if proposition is None:
        return None
    return replace(_parent(one), statement=Statement(id=f"exchange/{one.id}", statement=proposition))


def _parent(one: Candidate) -> Parent:
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
    """Read a stored record; ``None`` where there is none that this release can read."""
    try:
        return statement_of(dict(record)) if record else None
    except BadRow:
        return None

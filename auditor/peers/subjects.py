"""What is compared again and again: each configured domain, and the mirrored prompts of each route that has peers.

In series and documents a domain goes by its name, and a route's traffic by ``route:`` and the route's model: a domain's
questions are the product's, a route's are its clients', and the two are never put together.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select

from auditor.config import Config
from auditor.config.audits import EMBEDDING, Embedding, PeerDomain
from auditor.config.models import Route
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id
from auditor.peers.domains import configured_domain
from auditor.store.mirroring import mirrored_answers
from auditor.store.peers import round_answers

_ROUTE: Final = "route:"
#: In front of a judge's name where instruments are named.
JUDGE: Final = "judge:"
#: What an instructed encoder is told about answers to prompts of any kind.
_INSTRUCTION: Final = "Represent the answer:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Targets that are compared on the same answers."""

    targets: tuple[str, ...]
    peers: tuple[str, ...]  #: whose answers stand beside; a target among them is not its own peer


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Who is compared with whom, and by which margins: all that a comparison's document rests on beside answers."""

    label: str  #: the value of the series' label ``domain``
    origin: Origin  #: of the answers: those to questions are probes', those to clients' prompts peers'
    groups: tuple[Group, ...]
    k: float = 2.81
    margins: Mapping[str, float] = field(default_factory=dict)  #: by instrument
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: deployments of the same weights, by these


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject(Settings):
    """Deployments that are compared on the same questions again and again, and by what."""

    since: datetime
    window: float  #: seconds
    embedding: Embedding | None
    instruction: str
    judges: tuple[str, ...] = ()
    sought: str = ""  #: what judges look for

    @property
    def answers(self) -> tuple[Select[Any], ...]:
        """Queries for the answers of each group."""
        return answers_of(self, floor_id(self.since))


def compared(config: Config) -> Iterator[PeerDomain | Route]:
    """Give the entries of a configuration whose deployments are compared."""
    yield from config.peers
    yield from (route for route in config.routes if route.peers and embedding_of(config, route) is not None)


def subject_of(config: Config, entry: PeerDomain | Route, now: datetime) -> Subject:
    """Say who is compared by an entry, and by what.

    Raises
    ------
    UsageError, InputError
        A domain's questions cannot be read.
    """
    if isinstance(entry, PeerDomain):
        return _of_domain(config, entry, now)
    return _of_route(config, entry, now)


def label_of(entry: PeerDomain | Route) -> str:
    """Name what an entry compares, as series do.

    Examples
    --------
    >>> label_of(Route(model="gpt-4o", deployments=("d",), peers=("e", "f")))
    'route:gpt-4o'
    """
    return entry.domain if isinstance(entry, PeerDomain) else f"{_ROUTE}{entry.model}"


def settings_of(config: Config, entry: PeerDomain | Route) -> Settings:
    """Say who is compared with whom by an entry. Nothing but the configuration is read."""
    if isinstance(entry, PeerDomain):
        return Settings(
            label=label_of(entry),
            origin=Origin.PROBE,
            groups=(Group(targets=entry.deployments, peers=entry.deployments),),
            k=entry.k,
            margins={_instrument(name): margin for name, margin in entry.margins.items()},
            hosts=same_weights(config, entry.deployments),
        )
    # Each of the route's deployments answered other prompts, so each is compared with the peers on its own.
    targets, peers = [one.name for one in entry.deployments], tuple(config.mirrored(entry))
    return Settings(
        label=label_of(entry),
        origin=Origin.PEER,
        groups=tuple(Group(targets=(name,), peers=peers) for name in targets),
        margins={} if entry.mirror.margin is None else {EMBEDDING: entry.mirror.margin},
        hosts=same_weights(config, (*targets, *peers)),
    )


def instruments_of(entry: PeerDomain | Route) -> tuple[str, ...]:
    """Name what an entry's answers are compared by: ``embedding``, and ``judge:`` with each judge's name."""
    if not isinstance(entry, PeerDomain):
        return (EMBEDDING,)
    return (*([EMBEDDING] if entry.embedding is not None else []), *map(_instrument, entry.judges))


def _instrument(name: str) -> str:
    return name if name == EMBEDDING else f"{JUDGE}{name}"


def answers_of(settings: Settings, since: UUID, among: Select[Any] | None = None) -> tuple[Select[Any], ...]:
    """Give queries for the answers of each group, content aside.

    Parameters
    ----------
    since
        The first exchange of a peer that counts where prompts are mirrored; of a domain, rounds decide.
    among
        Selects the ids of the only exchanges that count; all do without it.
    """
    if settings.origin == Origin.PROBE:
        return tuple(round_answers(settings.label, group.peers, among) for group in settings.groups)
    route = settings.label.removeprefix(_ROUTE)
    return tuple(
        mirrored_answers(route, target, group.peers, since, among)
        for group in settings.groups
        for target in group.targets
    )


def window_of(config: Config, entry: PeerDomain | Route) -> float:
    """Give the seconds that a comparison looks back: a domain's pass, or for traffic the longest window."""
    return entry.every if isinstance(entry, PeerDomain) else max(config.monitor.windows)


def embedding_of(config: Config, route: Route) -> Embedding | None:
    """Give what a route's answers are compared by; ``None`` where nothing is named, or may see them.

    An encoder behind a deployment sees what clients were answered, as a judge does: that takes the same leave.
    """
    declared = (route.mirror.embedding, *(one.embedding for one in config.peers))
    found = next((one for one in declared if one is not None), None)
    shown = found is not None and (found.deployment is None or route.judge)
    return found if shown else None


def same_weights(config: Config, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Find the deployments among ``names`` that serve the same ``weights`` as another of them, by these."""
    among = set(names)
    found: dict[str, tuple[str, ...]] = {}
    for one in sorted(config.deployments, key=lambda each: each.name):
        if one.weights is not None and one.name in among:
            found[one.weights] = (*found.get(one.weights, ()), one.name)
    return {weights: hosts for weights, hosts in found.items() if len(hosts) > 1}


def _of_domain(config: Config, entry: PeerDomain, now: datetime) -> Subject:
    domain = configured_domain(entry)
    return Subject(
        **_fields(settings_of(config, entry)),
        since=now - timedelta(seconds=entry.every),
        window=entry.every,
        embedding=entry.embedding,
        instruction=domain.instruction,
        judges=entry.judges,
        sought=domain.target,
    )


def _of_route(config: Config, entry: Route, now: datetime) -> Subject:
    window = window_of(config, entry)
    return Subject(
        **_fields(settings_of(config, entry)),
        since=now - timedelta(seconds=window),
        window=window,
        embedding=embedding_of(config, entry),
        instruction=_INSTRUCTION,
    )


def _fields(settings: Settings) -> dict[str, Any]:
    return {each.name: getattr(settings, each.name) for each in fields(settings)}

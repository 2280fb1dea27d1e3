"""Define the recurring comparisons: each configured domain, and the mirrored prompts of each route with peers.

Series and documents name a domain by its name and a route's traffic by ``route:`` and the route's model. Answers to a
domain's questions and answers to clients' prompts are never pooled.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select

from auditor.config import Config
from auditor.config.audits import EMBEDDING, Embedding, PeerDomain
from auditor.config.routes import Route
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id
from auditor.peers.domains import configured_domain
from auditor.store.mirroring import mirrored_answers
from auditor.store.peers import round_answers

_ROUTE: Final = "route:"
#: Prefix of a judge's name in the names of instruments.
JUDGE: Final = "judge:"
#: Instruction for answers to prompts of any kind.
_INSTRUCTION: Final = "Represent the answer:"


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerGroup:
    """Targets that are compared on the same answers."""

    targets: tuple[str, ...]
    peers: tuple[str, ...]  #: the compared deployments; a target among them is not its own peer


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerSettings:
    """Targets, peers and margins of a comparison: everything its document depends on besides the answers."""

    label: str  #: the value of the series' label ``domain``
    origin: Origin  #: origin of the answers: ``probe`` for questions, ``peer`` for clients' prompts
    groups: tuple[PeerGroup, ...]
    k: float = 2.81
    margins: Mapping[str, float] = field(default_factory=dict)  #: margins by instrument
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: deployments of the same weights, by these


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonSpec(PeerSettings):
    """A recurring comparison: the deployments and the instruments."""

    since: datetime
    window: float  #: seconds
    embedding: Embedding | None
    instruction: str
    judges: tuple[str, ...] = ()
    sought: str = ""  #: text of what judges look for

    @property
    def answers(self) -> tuple[Select[Any], ...]:
        """Queries for the answers of each group."""
        return answers_of(self, floor_id(self.since))


def compared(config: Config) -> Iterator[PeerDomain | Route]:
    """Return the entries of a configuration that define comparisons."""
    yield from config.peers
    yield from (route for route in config.routes if route.peers and embedding_of(config, route) is not None)


def subject_of(config: Config, entry: PeerDomain | Route, now: datetime) -> ComparisonSpec:
    """Return the comparison that an entry defines.

    Raises
    ------
    UsageError, InputError
        A domain's questions cannot be read.
    """
    if isinstance(entry, PeerDomain):
        return _of_domain(config, entry, now)
    return _of_route(config, entry, now)


def label_of(entry: PeerDomain | Route) -> str:
    """Return the name of an entry in series and documents.

    Examples
    --------
    >>> label_of(Route(model="gpt-4o", deployments=("d",), peers=("e", "f")))
    'route:gpt-4o'
    """
    return entry.domain if isinstance(entry, PeerDomain) else f"{_ROUTE}{entry.model}"


def settings_of(config: Config, entry: PeerDomain | Route) -> PeerSettings:
    """Return targets, peers and margins of an entry; only the configuration is read."""
    if isinstance(entry, PeerDomain):
        return PeerSettings(
            label=label_of(entry),
            origin=Origin.PROBE,
            groups=(PeerGroup(targets=entry.deployments, peers=entry.deployments),),
            k=entry.k,
            margins={_instrument(name): margin for name, margin in entry.margins.items()},
            hosts=same_weights(config, entry.deployments),
        )
    # Each of the route's deployments answered other prompts, so each is compared with the peers on its own.
    targets, peers = [deployment.name for deployment in entry.deployments], tuple(config.mirrored(entry))
    return PeerSettings(
        label=label_of(entry),
        origin=Origin.PEER,
        groups=tuple(PeerGroup(targets=(name,), peers=peers) for name in targets),
        margins={} if entry.mirror.margin is None else {EMBEDDING: entry.mirror.margin},
        hosts=same_weights(config, (*targets, *peers)),
    )


def instruments_of(entry: PeerDomain | Route) -> tuple[str, ...]:
    """Return the names of an entry's instruments: ``embedding``, and ``judge:`` with each judge's name."""
    if not isinstance(entry, PeerDomain):
        return (EMBEDDING,)
    return (*([EMBEDDING] if entry.embedding is not None else []), *map(_instrument, entry.judges))


def _instrument(name: str) -> str:
    return name if name == EMBEDDING else f"{JUDGE}{name}"


def answers_of(settings: PeerSettings, since: UUID, among: Select[Any] | None = None) -> tuple[Select[Any], ...]:
    """Return queries for the answers of each group, without their content.

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
    """Return the period of a comparison in seconds: a domain's pass, or the longest window for traffic."""
    return entry.every if isinstance(entry, PeerDomain) else max(config.monitor.windows)


def embedding_of(config: Config, route: Route) -> Embedding | None:
    """Return the embedding of a route; ``None`` if none is named or allowed.

    An encoder behind a deployment sees clients' answers, like a judge: the route must allow it (``judge: true``).
    """
    declared = (route.mirror.embedding, *(embedding.embedding for embedding in config.peers))
    embedding = next((candidate for candidate in declared if candidate is not None), None)
    shown = embedding is not None and (embedding.deployment is None or route.judge)
    return embedding if shown else None


def same_weights(config: Config, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Group the deployments among ``names`` that serve the same ``weights``."""
    among = set(names)
    hosts_by_weights: dict[str, tuple[str, ...]] = {}
    for deployment in sorted(config.deployments, key=lambda each: each.name):
        if deployment.weights is not None and deployment.name in among:
            hosts_by_weights[deployment.weights] = (*hosts_by_weights.get(deployment.weights, ()), deployment.name)
    return {weights: hosts for weights, hosts in hosts_by_weights.items() if len(hosts) > 1}


def _of_domain(config: Config, entry: PeerDomain, now: datetime) -> ComparisonSpec:
    domain = configured_domain(entry)
    return ComparisonSpec(
        **_fields(settings_of(config, entry)),
        since=now - timedelta(seconds=entry.every),
        window=entry.every,
        embedding=entry.embedding,
        instruction=domain.instruction,
        judges=entry.judges,
        sought=domain.target,
    )


def _of_route(config: Config, entry: Route, now: datetime) -> ComparisonSpec:
    window = window_of(config, entry)
    return ComparisonSpec(
        **_fields(settings_of(config, entry)),
        since=now - timedelta(seconds=window),
        window=window,
        embedding=embedding_of(config, entry),
        instruction=_INSTRUCTION,
    )


def _fields(settings: PeerSettings) -> dict[str, Any]:
    return {each.name: getattr(settings, each.name) for each in fields(settings)}

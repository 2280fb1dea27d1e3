"""What is compared again and again: each configured domain, and the mirrored prompts of each route that has peers.

In series and documents a domain goes by its name, and a route's traffic by ``route:`` and the route's model: a domain's
questions are the product's, a route's are its clients', and the two are never put together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

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
_JUDGE: Final = "judge:"
#: What an instructed encoder is told about answers to prompts of any kind.
_INSTRUCTION: Final = "Represent the answer:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Targets that are compared on the same answers."""

    targets: tuple[str, ...]
    answers: Select[Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Deployments that are compared on the same questions, and by what."""

    label: str  #: the value of the series' label ``domain``
    origin: Origin  #: of the answers: those to questions are probes', those to clients' prompts peers'
    since: datetime
    window: float  #: seconds
    groups: tuple[Group, ...]
    embedding: Embedding | None
    instruction: str
    judges: tuple[str, ...] = ()
    sought: str = ""  #: what judges look for
    k: float = 2.81
    margins: Mapping[str, float] = field(default_factory=dict)  #: by instrument
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: deployments of the same weights, by these


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


def _of_domain(config: Config, settings: PeerDomain, now: datetime) -> Subject:
    domain = configured_domain(settings)
    answers = round_answers(settings.domain, settings.deployments)
    return Subject(
        label=label_of(settings),
        origin=Origin.PROBE,
        since=now - timedelta(seconds=settings.every),
        window=settings.every,
        groups=(Group(targets=settings.deployments, answers=answers),),
        embedding=settings.embedding,
        instruction=domain.instruction,
        judges=settings.judges,
        sought=domain.target,
        k=settings.k,
        margins={name if name == EMBEDDING else f"{_JUDGE}{name}": one for name, one in settings.margins.items()},
        hosts=same_weights(config, settings.deployments),
    )


def _of_route(config: Config, route: Route, now: datetime) -> Subject:
    window = window_of(config, route)
    since, peers = now - timedelta(seconds=window), config.mirrored(route)
    # Each of the route's deployments answered other prompts, so each is compared with the peers on its own.
    targets: Sequence[str] = [one.name for one in route.deployments]
    return Subject(
        label=label_of(route),
        origin=Origin.PEER,
        since=since,
        window=window,
        groups=tuple(
            Group(targets=(name,), answers=mirrored_answers(route.model, name, peers, floor_id(since)))
            for name in targets
        ),
        embedding=embedding_of(config, route),
        instruction=_INSTRUCTION,
        margins={} if route.mirror.margin is None else {EMBEDDING: route.mirror.margin},
        hosts=same_weights(config, (*targets, *peers)),
    )

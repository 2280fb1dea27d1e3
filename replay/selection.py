"""Parse ``--select``, and draw a sample from the exchanges that match.

``store`` searches for the exchanges. A sample is drawn in one pass; the same seed draws the same sample, in whatever
order the exchanges arrive. Each drawn exchange carries its probability, so that estimates can be weighted.
"""

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.domain.moments import EXAMPLES, ago, read_moment
from auditor.domain.sampling import rank
from auditor.errors import UsageError

#: The origins that can be replayed. Replays, judge calls and mirrored prompts cannot.
ORIGINS: Final = (Origin.PROBE, Origin.CLIENT)
KEYS: Final = (
    "deployment",
    "origin",
    "task",
    "plan",
    "route",
    "from",
    "to",
    "last",
    "tag.NAME",
    "limit",
    "seed",
    "draw",
)
_TAG: Final = "tag."


class DrawMethod(StrEnum):
    """The probabilities with which matching exchanges are drawn if there is a limit."""

    EVEN = "even"  #: equal probabilities
    TRAFFIC = "traffic"  #: in proportion to the weight: an exchange captured with probability 0.05 counts as twenty


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeSelection:
    """A selection of stored exchanges. Absent conditions do not restrict it."""

    deployment: str | None = None
    route: str | None = None  #: a name of the configuration, also ``*``
    origin: Origin | None = None
    task: Task | None = None  #: as first asked; only probes have one
    plan: str | None = None  #: only probes have one
    since: datetime | None = None
    until: datetime | None = None  #: exclusive
    tags: tuple[tuple[str, str], ...] = ()  #: names and values, sorted: all of them must hold
    limit: int | None = None
    seed: int = 0  #: of the draw
    draw: DrawMethod = DrawMethod.EVEN

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The origins that can match. Client exchanges have neither task nor plan."""
        if self.origin is not None:
            return (self.origin,)
        return ORIGINS if self.task is None and self.plan is None else (Origin.PROBE,)

    @property
    def canonical(self) -> str:
        """The selection in canonical spelling, independent of the order and spelling of the input."""
        members = {
            "deployment": self.deployment,
            "route": self.route,
            "origin": self.origin,
            "task": self.task,
            "plan": self.plan,
            "from": self.since and self.since.isoformat(),
            "to": self.until and self.until.isoformat(),
            **{_TAG + name: value for name, value in self.tags},
            "limit": self.limit,
            "seed": self.seed or None,
            "draw": self.draw if self.draw is not DrawMethod.EVEN else None,
        }
        return ",".join(f"{key}={value}" for key, value in members.items() if value is not None)


def read_selection(text: str) -> ExchangeSelection:
    """Read ``deployment=NAME,origin=probe,task=BJ,plan=ID,from=2026-03-01,to=2026-03-08,limit=200``, or ``all``.

    Times are ISO 8601, in UTC unless they have an offset, or a length of time before now; ``to`` is exclusive, so that
    adjacent periods do not overlap. ``last=7d`` is the whole period.
    ``seed`` and ``draw`` determine which exchanges are drawn if more than ``limit`` match; without a limit nothing is
    drawn.

    Raises
    ------
    UsageError
        A part cannot be read; the message names it and the valid values.

    Examples
    --------
    >>> read_selection("limit=5, task=BJ").canonical
    'task=BJ,limit=5'
    """
    values = _parts(text)
    since, until = _period(values)
    selection = ExchangeSelection(
        deployment=values.get("deployment"),
        route=values.get("route"),
        origin=_origin(values.get("origin")),
        task=_task(values.get("task")),
        plan=values.get("plan"),
        since=since,
        until=until,
        tags=tuple(sorted((key.removeprefix(_TAG), value) for key, value in values.items() if key.startswith(_TAG))),
        limit=_whole("limit", values.get("limit"), least=1),
        seed=_whole("seed", values.get("seed"), least=0) or 0,
        draw=_chances(values.get("draw")),
    )
    if selection.limit is None and (odd := [key for key in ("seed", "draw") if key in values]):
        raise UsageError(f"--select: {odd[0]} says which are drawn, and without limit none are")
    if selection.origin is Origin.CLIENT and (selection.task or selection.plan):
        raise UsageError("--select: client traffic has no task and no plan; leave them out, or select origin=probe")
    return selection


def client_selection(text: str) -> ExchangeSelection:
    """Read a selection of client traffic without a limit: a draw would separate the pairs.

    Raises
    ------
    UsageError
        It cannot be read, selects probes, or has a limit.
    """
    selection = read_selection(text)
    if selection.origins == (Origin.PROBE,):
        raise UsageError("--select: compare reads client traffic only; the report compares the formats of probes")
    if selection.limit is not None:
        raise UsageError("--select: compare allows no limit, because a draw would separate the pairs")
    return replace(selection, origin=Origin.CLIENT)


def _parts(text: str) -> Mapping[str, str]:
    if text.strip() == "all":
        return {}
    values: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = key in KEYS or (key.startswith(_TAG) and key != _TAG)
        if not known or not equals:
            raise UsageError(f"--select: {part.strip()!r} is not KEY=VALUE with one of the keys {', '.join(KEYS)}")
        if not value:
            raise UsageError(f"--select: {key} has no value")
        if key in values:
            raise UsageError(f"--select: {key} is given twice")
        values[key] = value
    return values


def _origin(value: str | None) -> Origin | None:
    if value is not None and value not in ORIGINS:
        raise UsageError(f"--select: origin must be one of {', '.join(ORIGINS)}, not {value!r}")
    return Origin(value) if value is not None else None


def _task(value: str | None) -> Task | None:
    if value is None:
        return None
    for task in Task:
        if task.value.lower() == value.lower():
            return task
    raise UsageError(f"--select: task must be one of {', '.join(Task)}, not {value!r}")


def _period(values: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    now = datetime.now(UTC)
    last = values.get("last")
    if last is None:
        since, until = _moment("from", values.get("from"), now), _moment("to", values.get("to"), now)
        if since and until and since >= until:
            raise UsageError("--select: from must be before to")
        return since, until
    if "from" in values or "to" in values:
        raise UsageError("--select: last is the whole period; leave from and to out")
    try:
        return ago(last, now), now
    except ValueError:
        raise UsageError(f"--select: last must be a length of time such as 7d, 12h or 4w, not {last!r}") from None


def _moment(key: str, value: str | None, now: datetime) -> datetime | None:
    if value is None:
        return None
    try:
        return read_moment(value, now)
    except ValueError:
        raise UsageError(f"--select: {key} must be {EXAMPLES}, not {value!r}") from None


def _whole(key: str, value: str | None, *, least: int) -> int | None:
    if value is None:
        return None
    if not value.isascii() or not value.isdecimal() or not least <= int(value) < 2**63:
        raise UsageError(f"--select: {key} must be a whole number from {least}, not {value!r}")
    return int(value)


def _chances(value: str | None) -> DrawMethod:
    if value is not None and value not in set(DrawMethod):
        raise UsageError(f"--select: draw must be one of {', '.join(DrawMethod)}, not {value!r}")
    return DrawMethod(value) if value is not None else DrawMethod.EVEN


_RANKS: Final = 2.0**64


class HasInclusion(Protocol):
    """The fields of an exchange that a sample draw needs."""

    @property
    def id(self) -> UUID:
        """The id; with the seed it determines the random number of the draw."""

    @property
    def inclusion(self) -> float:
        """Probability with which it was captured, (0, 1]."""


_Item = TypeVar("_Item", bound=HasInclusion)


class SampleDraw(Generic[_Item]):
    """A draw of at most the selection's limit, which holds no more exchanges than it draws.

    With equal probabilities this is a simple random sample. With probabilities by traffic it is sequential Poisson
    sampling: it takes the exchanges with the smallest ``u / w``, where ``u`` is a uniform random number and ``w = 1 /
    inclusion`` (Ohlsson 1998, Sequential Poisson Sampling, Journal of Official Statistics 14(2)).
    """

    def __init__(self, selection: ExchangeSelection) -> None:
        self._limit, self._seed = selection.limit, selection.seed
        self._by_traffic = selection.draw is DrawMethod.TRAFFIC
        self._taken: list[tuple[float, int, _Item]] = []
        self._seen: Counter[float] = Counter()

    def show(self, item: _Item) -> None:
        """Add one exchange to the frame; each only once."""
        self._seen[item.inclusion] += 1
        place = rank(self._seed, item.id.bytes) / _RANKS * (item.inclusion if self._by_traffic else 1.0)
        # The first of the heap has the highest rank of those taken, so it is replaced.
        entry = (-place, -item.id.int, item)
        if self._limit is None or len(self._taken) < self._limit:
            heapq.heappush(self._taken, entry)
        else:
            heapq.heappushpop(self._taken, entry)

    @property
    def taken(self) -> list[_Item]:
        """The drawn exchanges by id, the oldest first."""
        return sorted((item for _, _, item in self._taken), key=lambda item: item.id)

    @property
    def chances(self) -> Mapping[float, float]:
        """Probability of being drawn, (0, 1], by the probability of capture."""
        if self._limit is None:
            return dict.fromkeys(self._seen, 1.0)
        if self._by_traffic:
            return proportional(self._seen, self._limit)
        return dict.fromkeys(self._seen, min(1.0, self._limit / max(1, self._seen.total())))


def proportional(kept: Mapping[float, int], n: int) -> dict[float, float]:
    """Allocate ``n`` draws in proportion to the exchanges' weights, with probabilities of at most 1.

    Parameters
    ----------
    kept
        Number of exchanges by their inclusion probability, (0, 1].
    n
        Number of draws, at least 1.

    Returns
    -------
    dict
        Probability of being drawn, ``min(1, c / inclusion)``; over all exchanges they sum to ``n``, or to the number of
        exchanges if that is smaller.

    Examples
    --------
    Of 30 that stand for one each and 5 that stand for four each, 10 are drawn: about 6 and 4.

    >>> proportional({1.0: 30, 0.25: 5}, 10)
    {1.0: 0.2, 0.25: 0.8}
    """
    certain: set[float] = set()
    # Highest weights first: after the first one with a probability below 1, all others are below 1 too.
    for inclusion in sorted(kept):
        if _share(kept, certain, n) < inclusion:
            break
        certain.add(inclusion)
    share = _share(kept, certain, n)
    return {inclusion: 1.0 if inclusion in certain else share / inclusion for inclusion in kept}


def _share(kept: Mapping[float, int], certain: set[float], n: int) -> float:
    """Return ``c``: the remaining draws divided by the remaining weight."""
    left = n - sum(kept[inclusion] for inclusion in certain)
    rest = sum(count / inclusion for inclusion, count in kept.items() if inclusion not in certain)
    return max(0.0, left) / rest if rest else 0.0

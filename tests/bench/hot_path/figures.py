"""What rounds say together: medians over those in which nothing else used the CPUs, and how far they lie apart.

Proxies are compared within a cycle, in which one follows the other at once: what slows the machine down for a while
then slows both. Pure; nothing here knows how a round came about.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.hot_path.own_gateway import NAME, Shipped
from bench.hot_path.rounds import Round

from auditor.domain.estimate import Insufficient

#: CPUs that others may use in a round that is said to be quiet.
QUIET = 0.15


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A median, and the least and the most of what it is the median of.

    Attributes
    ----------
    rounds
        How many rounds, or pairs of rounds, it is of.
    disturbed
        No round was quiet, so it is of all of them.
    """

    value: float
    low: float
    high: float
    rounds: int
    disturbed: bool


Outcome = Figure | Insufficient


def each(rounds: Iterable[Round], value: Callable[[Round], float | None]) -> Outcome:
    """Something of each of these rounds."""
    return _figure([(number, _is_quiet(one)) for one in rounds if (number := value(one)) is not None])


def ratio(rounds: Iterable[Round], scenario: str, above: str, below: str) -> Outcome:
    """How many times one proxy's cost is another's."""
    return _paired(rounds, scenario, above, below, lambda a, b: a.cost / b.cost if a.cost and b.cost else None)


def together(rounds: Iterable[Round], shipped: Iterable[Shipped], scenario: str, below: str) -> Outcome:
    """How many times the cost of worker, parent and shipper is another proxy's."""
    costs = {one.cycle: one.cost for one in shipped if one.scenario == scenario and one.units}

    def times(one: Round, other: Round) -> float | None:
        return costs[one.cycle] / other.cost if other.cost and one.cycle in costs else None

    return _paired(rounds, scenario, NAME, below, times)


def added_wait(rounds: Iterable[Round], scenario: str, proxy: str, direct: str, quantile: str) -> Outcome:
    """Microseconds by which a quantile of the time until the first event is later than without any proxy."""

    def later(one: Round, straight: Round) -> float | None:
        return one.first[quantile] - straight.first[quantile] if one.first and straight.first else None

    return _paired(rounds, scenario, proxy, direct, later)


def _paired(
    rounds: Iterable[Round], scenario: str, above: str, below: str, value: Callable[[Round, Round], float | None]
) -> Outcome:
    named = {(one.proxy, one.cycle): one for one in rounds if one.scenario == scenario}
    pairs = [
        (one, other)
        for (proxy, cycle), one in named.items()
        if proxy == above and (other := named.get((below, cycle))) is not None
    ]
    return _figure([
        (number, _is_quiet(one) and _is_quiet(other))
        for one, other in pairs
        if (number := value(one, other)) is not None
    ])  # fmt: skip


def _is_quiet(one: Round) -> bool:
    return one.others <= QUIET


def _figure(found: Sequence[tuple[float, bool]]) -> Outcome:
    quiet = [value for value, is_quiet in found if is_quiet]
    chosen = quiet or [value for value, _ in found]
    if not chosen:
        return Insufficient(reason="not_measured")
    return Figure(
        value=median(chosen), low=min(chosen), high=max(chosen), rounds=len(chosen), disturbed=not quiet
    )  # fmt: skip

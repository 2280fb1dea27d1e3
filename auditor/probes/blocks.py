"""Plan blocks of questions for probes that ask until the interval of a rate is narrow enough.

A block is one draw. It asks each condition about some statements, drawn anew by the seed, in templates that rotate, so
the rates of blocks vary about the rate of the whole panel. A confidence sequence over whole blocks may be read after
any of them (MONITORING 2). The sizes of the blocks are fixed before the first block, shared between conditions by
Neyman allocation. They depend on rates of the weeks before the pass and are stored with its plan; the answers of a pass
only decide whether it continues.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

import numpy as np
from typing_extensions import override

from auditor.config import Deployment, Probe
from auditor.counting.joint import Floats
from auditor.domain.estimate import Insufficient
from auditor.domain.plan import TARGET
from auditor.probes.forecast import call_usage
from auditor.probes.plan import PlanItem, Planned, PlanSpec, hash_id, make_plan, plan_name
from auditor.probes.run import Runner
from auditor.stats.intervals import Interval, z_quantile
from auditor.stats.sequential import asymptotic_sequence
from auditor.store.engine import transaction
from auditor.store.plans import Count, count_calls
from auditor.store.target_plans import BlockCount, count_blocks, count_past, read_settings

#: Limits of a condition's share, as multiples of the equal share.
FLOOR: Final = 0.1
CAP: Final = 3.0
#: The lowest rate for which a variance is assumed, because symmetric intervals are invalid below it.
LEAST: Final = 0.05


def plug_in(events: Floats, trials: Floats) -> Floats:
    """Return past rates as (k + 1) / (n + 2), which is never 0 or 1, and is one half without past answers.

    >>> plug_in(np.array([0.0, 0.0, 49.0]), np.array([0.0, 998.0, 98.0])).tolist()
    [0.5, 0.05, 0.5]
    """
    return np.asarray(np.clip((events + 1) / (trials + 2), LEAST, 1 - LEAST))


def shares(rates: Floats, weights: Floats, costs: Floats) -> Floats:
    """Allocate the questions: ``a_c ~ w_c sqrt(p_c (1 - p_c) / cost_c)``, within floor and cap.

    The factor ``1 - ICC`` of MONITORING 5 is left out: it is taken to be the same for all conditions.

    Parameters
    ----------
    rates
        Shape [C], in (0, 1).
    weights, costs
        Shape [C]: the weights of the conditions in the rate (sum 1), and the cost of one question, > 0.

    Returns
    -------
    ndarray
        Shape [C]: shares with sum 1, each between ``FLOOR / C`` and ``CAP / C``.

    Examples
    --------
    Standard deviations of .5 and .3: five to three.

    >>> shares(np.array([0.5, 0.1]), np.full(2, 0.5), np.ones(2)).round(3).tolist()
    [0.625, 0.375]
    """
    size = len(rates)
    wanted = weights * np.sqrt(rates * (1 - rates) / costs)
    low, high = FLOOR / size, min(CAP / size, 1.0)
    # Every share grows with the scale. Bisection finds the scale at which the sum is 1.
    smallest, largest = 0.0, 1 / float(wanted.min())
    for _ in range(100):
        scale = (smallest + largest) / 2
        if np.clip(scale * wanted, low, high).sum() < 1:
            smallest = scale
        else:
            largest = scale
    clipped = np.clip(largest * wanted, low, high)
    return np.asarray(clipped / clipped.sum())


def needed(rates: Floats, weights: Floats, proportions: Floats, half_width: float, conf: float = 0.95) -> int:
    """Return the number of answers for an interval of this half-width: ``(z / h)^2 sum_c w_c^2 p_c (1 - p_c) / a_c``.

    Parameters
    ----------
    rates, weights, proportions
        Shape [C]; ``proportions`` are the shares of the questions.
    half_width
        Half-width of the interval for a single look, in (0, 1).
    conf
        Two-sided level, in (0, 1).

    Examples
    --------
    One condition at .29: 1.96^2 x .2059 / .02^2.

    >>> needed(np.array([0.29]), np.ones(1), np.ones(1), 0.02)
    1978
    """
    variance = float((weights**2 * rates * (1 - rates) / proportions).sum())
    return math.ceil((z_quantile(conf) / half_width) ** 2 * variance)


#: The least number of blocks for a decision, because the sequence is asymptotic.
FEWEST: Final = 20
#: The number of blocks at which the sequence is narrowest, and for which a plan is sized.
AIM: Final = 40
#: The width of the sequence relative to an interval for one look.
_WIDER: Final = 1.6


@dataclass(frozen=True, kw_only=True)
class Blocks(Planned):
    """A plan of ``draws`` blocks; the same plan may have more of them later."""

    sizes: tuple[int, ...]  #: statements asked in a block, by cell

    def of(self, draws: int) -> "Blocks":
        """Return the same plan with this number of blocks."""
        return replace(self, draws=draws)

    @property
    @override
    def instances(self) -> int:
        """The number of calls to each deployment so far."""
        return self.draws * sum(self.sizes)

    @cached_property
    @override
    def items(self) -> tuple[PlanItem, ...]:
        """The questions of the first block. Other blocks have as many, with the same conditions."""
        return self.block(0)

    @override
    def item(self, position: int) -> PlanItem:
        """Return the question of the call at this position."""
        number, place = divmod(position, sum(self.sizes))
        if number not in self._made:
            self._made[number] = self.block(number)
        return self._made[number][place]

    @cached_property
    def _made(self) -> dict[int, tuple[PlanItem, ...]]:
        return {}

    def block(self, number: int) -> tuple[PlanItem, ...]:
        """Draw the questions of one block."""
        drawn = []
        for cell, size in zip(self.cells, self.sizes, strict=True):
            named = [
                (self._order(number, cell.condition.key, statement.id), at)
                for at, statement in enumerate(self.statements)
            ]
            for _, at in sorted(named)[:size]:
                template = cell.rotated(at, self.number + number)
                drawn.append(PlanItem(statement=self.statements[at], template=template))
        return tuple(sorted(drawn, key=lambda item: self._order(number, item.key)))

    def _order(self, number: int, *parts: str) -> str:
        return hash_id(self.plan.seed, self.plan.id, number, *parts)


def make_blocks(spec: PlanSpec, half_width: float, rates: Mapping[str, float] | None = None) -> Blocks:
    """Make the plan of a pass that asks until its rate is known to ``half_width``.

    The id does not depend on ``rates``. The rates known at the start are stored in the settings of the plan.

    Parameters
    ----------
    spec
        Design, statements, seed and number of the pass.
    half_width
        Half-width of the confidence sequence, in (0, 1).
    rates
        Past rates by condition; one half if there is none.
    """
    whole = make_plan(spec)
    conditions = [cell.condition.key for cell in whole.cells]
    known = {name: (rates or {}).get(name, 0.5) for name in conditions}
    sizes = _sizes(whole, np.array([known[name] for name in conditions]), half_width)
    plan = replace(
        whole.plan,
        id=f"{TARGET}-{hash_id(whole.plan.id, repr(half_width), size=6)}",
        name=block_plan_name(spec.design, spec.number, half_width),
        design=TARGET,
        settings={**whole.plan.settings, "half_width": half_width, "rates": known, "design": spec.design.value},
    )
    return Blocks(
        plan=plan, statements=whole.statements, cells=whole.cells, draws=FEWEST, number=whole.number, sizes=sizes
    )


def block_plan_name(design: str, number: int, half_width: float) -> str:
    """Return the name of the plan of one pass."""
    return f"{plan_name(design, number)} to {half_width:g}"


def _sizes(planned: Planned, rates: Floats, half_width: float) -> tuple[int, ...]:
    """Return the number of questions per condition with which ``AIM`` blocks have enough answers for the sequence."""
    weights = np.full(len(rates), 1 / len(rates))
    first = [PlanItem(statement=planned.statements[0], template=cell.templates[0]) for cell in planned.cells]
    costs = np.array([float(usage.prompt + usage.completion) for usage in map(call_usage, first)])
    proportions = shares(rates, weights, costs)
    block = _WIDER**2 * needed(rates, weights, proportions, half_width) / AIM
    return tuple(min(len(planned.statements), max(1, round(float(share) * block))) for share in proportions)


def sequence_of(values: Floats) -> Interval | Insufficient:
    """Compute the confidence sequence of the rate from whole blocks, valid at any time.

    Parameters
    ----------
    values
        Shape [K]: the rates of the blocks so far.

    Examples
    --------
    >>> found = sequence_of(np.tile([0.25, 0.35], 20))
    >>> round(found.low, 3), round(found.high, 3)
    (0.276, 0.324)
    """
    size = len(values)
    if size < FEWEST:
        return Insufficient(reason=f"{size} blocks, {FEWEST} needed")
    return asymptotic_sequence(size, float(values.mean()), float(values.std(ddof=1)), best_at=AIM)


def is_known(values: Floats, probe: Probe) -> bool:
    """Return whether the rate of a probe is known to its ``half_width``."""
    interval = sequence_of(values)
    return (
        isinstance(interval, Interval)
        and probe.half_width is not None
        and interval.high - interval.low <= 2 * probe.half_width
    )


#: Seconds between two changes of the allocation.
_WEEK: Final = 7 * 86_400.0


async def stages(
    runner: Runner, probe: Probe, spec: PlanSpec, deployments: Sequence[Deployment], coder: str
) -> list[tuple[Blocks, list[Deployment]]]:
    """Return the blocks to ask now, and the deployments: a plan for each number of blocks.

    A deployment with uncoded answers gets no new block.

    Parameters
    ----------
    probe
        A probe with a ``half_width``.
    spec
        The pass.
    deployments
        All deployments of the probe.
    coder
        The coder whose codings determine the rates of the blocks.
    """
    blocks = await _blocks(runner, probe, spec, deployments, coder)
    async with transaction(runner.engine) as connection:
        stored = await count_calls(connection, blocks.plan.id)
        heard = await count_blocks(connection, coder, blocks.plan.id)
    by_draws: dict[int, list[Deployment]] = defaultdict(list)
    for deployment in deployments:
        draws = _draws(probe, blocks, stored.get(deployment.name, Count()), heard.get(deployment.name, []))
        if draws is not None:
            by_draws[draws].append(deployment)
    return [(blocks.of(draws), by_draws[draws]) for draws in sorted(by_draws)]


def _draws(probe: Probe, blocks: Blocks, stored: Count, counts: Sequence[BlockCount]) -> int | None:
    """Return the number of blocks for a deployment; ``None`` if answers are missing or the rate is known."""
    so_far = stored.planned // sum(blocks.sizes)
    if so_far == 0:
        return FEWEST
    if stored.answered < stored.planned:
        return so_far
    if sum(count.coded for count in counts) < stored.planned or is_known(block_rates(counts), probe):
        return None
    return so_far + 1


def block_rates(counts: Iterable[BlockCount]) -> Floats:
    """Return the rate of each block, with equal weights of its conditions. Blocks without a condition are left out.

    >>> block_rates([BlockCount(block=0, condition=name, coded=4, events=events, trials=4)
    ...              for name, events in (("a", 1), ("b", 3))]).tolist()
    [0.5]
    """
    by_block: dict[int, list[BlockCount]] = defaultdict(list)
    for count in counts:
        by_block[count.block].append(count)
    whole = [by_block[number] for number in sorted(by_block) if all(count.trials for count in by_block[number])]
    return np.array([np.mean([count.events / count.trials for count in block]) for block in whole])


async def _blocks(
    runner: Runner, probe: Probe, spec: PlanSpec, deployments: Iterable[Deployment], coder: str
) -> Blocks:
    """Make the plan of the pass from its stored rates; if it has not begun, from the rates known before it."""
    assert probe.half_width is not None
    begun = make_blocks(spec, probe.half_width)
    week = spec.number * probe.every // _WEEK * _WEEK
    until = datetime.fromtimestamp(week, UTC)
    since = until - timedelta(seconds=max(runner.config.monitor.windows))
    async with transaction(runner.engine) as connection:
        settings = await read_settings(connection, begun.plan.id)
        if settings is not None:
            rates: Mapping[str, float] = settings["rates"]
        else:
            past = await count_past(connection, coder, [deployment.name for deployment in deployments], since, until)
            rates = {
                name: float(plug_in(np.array([count.events]), np.array([count.trials]))[0])
                for name, count in past.items()
            }
    return make_blocks(spec, probe.half_width, rates)

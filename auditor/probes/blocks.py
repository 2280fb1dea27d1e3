"""Plans that ask until a rate is known well enough: blocks of questions, one after the other, each a random sample.

A block is one draw. It asks each condition about so many statements, drawn anew by the seed, in templates that rotate.
So the rates of blocks vary about that of the whole panel, and a confidence sequence over whole blocks may be looked at
after any of them (MONITORING 2). What is asked is settled before the first block: the sizes are the plan's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from typing_extensions import override

from auditor.config import Probe
from auditor.domain.estimate import Insufficient
from auditor.domain.plan import TARGET
from auditor.metrics.joint import Floats
from auditor.probes.allocation import needed, shares
from auditor.probes.estimate import call_usage
from auditor.probes.plan import Asked, Item, Planned, digest, make_plan
from auditor.stats.confidence_sequences import asymptotic_sequence
from auditor.stats.intervals import Interval

#: Fewer blocks than this are not looked at: the sequence is an asymptotic one.
FEWEST: Final = 20
#: Blocks after which it is narrowest, and at which a plan aims.
AIM: Final = 40
#: How much wider a sequence is than an interval for one look.
_WIDER: Final = 1.6


@dataclass(frozen=True, kw_only=True)
class Blocks(Planned):
    """A plan of ``draws`` blocks; the same plan may have more of them later."""

    sizes: tuple[int, ...]  #: statements asked in a block, by cell

    def of(self, draws: int) -> "Blocks":
        """Give the same plan with so many blocks."""
        return replace(self, draws=draws)

    @property
    @override
    def instances(self) -> int:
        """How many calls there are for each deployment so far."""
        return self.draws * sum(self.sizes)

    @cached_property
    @override
    def items(self) -> tuple[Item, ...]:
        """The questions of the first block: others are as many, of the same conditions."""
        return self.block(0)

    @override
    def item(self, position: int) -> Item:
        """Give the question that the call of this position asks."""
        number, place = divmod(position, sum(self.sizes))
        if number not in self._made:
            self._made[number] = self.block(number)
        return self._made[number][place]

    @cached_property
    def _made(self) -> dict[int, tuple[Item, ...]]:
        return {}

    def block(self, number: int) -> tuple[Item, ...]:
        """Draw the questions of one block."""
        drawn = []
        for cell, size in zip(self.cells, self.sizes, strict=True):
            named = [(self._order(number, cell.condition.key, one.id), at) for at, one in enumerate(self.statements)]
            for _, at in sorted(named)[:size]:
                templates = cell.templates
                template = templates[(at + self.number + number) % len(templates)]
                drawn.append(Item(statement=self.statements[at], template=template))
        return tuple(sorted(drawn, key=lambda item: self._order(number, item.key)))

    def _order(self, number: int, *named: str) -> str:
        return digest(str(self.plan.seed), self.plan.id, str(number), *named)


def make_blocks(asked: Asked, half_width: float, rates: Mapping[str, float] | None = None) -> Blocks:
    """Make the plan of a pass that asks until its rate is known to ``half_width``.

    Its id does not depend on ``rates``: which were known when it began is kept with the plan, in its settings.

    Parameters
    ----------
    asked
        Design, statements, seed and number of the pass.
    half_width
        Of the confidence sequence, in (0, 1).
    rates
        Of the past, by condition; one half where there is none.
    """
    whole = make_plan(asked)
    conditions = [cell.condition.key for cell in whole.cells]
    known = {name: (rates or {}).get(name, 0.5) for name in conditions}
    sizes = _sizes(whole, np.array([known[name] for name in conditions]), half_width)
    plan = replace(
        whole.plan,
        id=f"{TARGET}-{digest(whole.plan.id, repr(half_width), size=6)}",
        name=f"{whole.plan.name} to {half_width:g}",
        design=TARGET,
        settings={**whole.plan.settings, "half_width": half_width, "rates": known, "design": asked.design.value},
    )
    return Blocks(
        plan=plan, statements=whole.statements, cells=whole.cells, draws=FEWEST, number=whole.number, sizes=sizes
    )


def _sizes(whole: Planned, rates: Floats, half_width: float) -> tuple[int, ...]:
    """Share a block out, so that ``AIM`` of them are as many answers as the sequence is expected to need."""
    weights = np.full(len(rates), 1 / len(rates))
    first = [Item(statement=whole.statements[0], template=cell.templates[0]) for cell in whole.cells]
    costs = np.array([float(usage.prompt + usage.completion) for usage in map(call_usage, first)])
    asked = shares(rates, weights, costs)
    block = _WIDER**2 * needed(rates, weights, asked, half_width) / AIM
    return tuple(min(len(whole.statements), max(1, round(float(share) * block))) for share in asked)


def sequence_of(values: Floats) -> Interval | Insufficient:
    """Bound the rate from whole blocks, whenever one looks.

    Parameters
    ----------
    values
        Shape [K], the rates of the blocks so far.

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
    """Say whether a probe's rate is known as well as was asked for."""
    found = sequence_of(values)
    return (
        isinstance(found, Interval) and probe.half_width is not None and found.high - found.low <= 2 * probe.half_width
    )

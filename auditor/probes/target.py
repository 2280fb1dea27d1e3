"""How far a probe goes that asks until a rate is known: which deployments are to have how many blocks by now.

The sizes of the blocks rest on rates of the weeks before the pass, and are kept with its plan: nothing that the pass
itself hears changes what it asks, only whether it goes on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from auditor.config import Deployment, Probe
from auditor.metrics.joint import Floats
from auditor.probes.allocation import plug_in
from auditor.probes.blocks import FEWEST, Blocks, is_known, make_blocks
from auditor.probes.plan import Asked
from auditor.probes.run import Runner
from auditor.store.engine import reading
from auditor.store.plans import Count, count_calls
from auditor.store.target_plans import BlockCount, count_blocks, count_past, read_settings

#: Allocations change once in so many seconds.
_WEEK: Final = 7 * 86_400.0


async def stages(
    runner: Runner, probe: Probe, asked: Asked, deployments: Sequence[Deployment], coder: str
) -> list[tuple[Blocks, list[Deployment]]]:
    """Give the blocks that are to be asked now, and of whom: a plan for each number of blocks.

    A deployment whose blocks are not all read yet is waited for.

    Parameters
    ----------
    probe
        With a ``half_width``.
    asked
        The pass.
    deployments
        All that the probe goes to.
    coder
        Whose readings say what the blocks are.
    """
    blocks = await _blocks(runner, probe, asked, deployments, coder)
    async with reading(runner.engine) as connection:
        stored = await count_calls(connection, blocks.plan.id)
        heard = await count_blocks(connection, coder, blocks.plan.id)
    found: dict[int, list[Deployment]] = defaultdict(list)
    for one in deployments:
        draws = _draws(probe, blocks, stored.get(one.name, Count()), heard.get(one.name, []))
        if draws is not None:
            found[draws].append(one)
    return [(blocks.of(draws), found[draws]) for draws in sorted(found)]


def _draws(probe: Probe, blocks: Blocks, stored: Count, heard: Sequence[BlockCount]) -> int | None:
    """Say how many blocks a deployment is to have; ``None`` where it is waited for, or enough is known."""
    so_far = stored.planned // sum(blocks.sizes)
    if so_far == 0:
        return FEWEST
    if stored.answered < stored.planned:
        return so_far
    if sum(one.coded for one in heard) < stored.planned or is_known(block_rates(heard), probe):
        return None
    return so_far + 1


def block_rates(heard: Iterable[BlockCount]) -> Floats:
    """Give the rate of each block, its conditions of the same weight; one that lacks a condition is left out.

    >>> block_rates([BlockCount(block=0, condition=name, coded=4, events=events, trials=4)
    ...              for name, events in (("a", 1), ("b", 3))]).tolist()
    [0.5]
    """
    by_block: dict[int, list[BlockCount]] = defaultdict(list)
    for one in heard:
        by_block[one.block].append(one)
    whole = [by_block[number] for number in sorted(by_block) if all(one.trials for one in by_block[number])]
    return np.array([np.mean([one.events / one.trials for one in block]) for block in whole])


async def _blocks(runner: Runner, probe: Probe, asked: Asked, deployments: Iterable[Deployment], coder: str) -> Blocks:
    """Make the pass's plan as it began; if it has not, on the rates that are known before it."""
    assert probe.half_width is not None
    begun = make_blocks(asked, probe.half_width)
    week = asked.number * probe.every // _WEEK * _WEEK
    until = datetime.fromtimestamp(week, UTC)
    since = until - timedelta(seconds=max(runner.config.monitor.windows))
    async with reading(runner.engine) as connection:
        settings = await read_settings(connection, begun.plan.id)
        if settings is not None:
            rates: Mapping[str, float] = settings["rates"]
        else:
            past = await count_past(connection, coder, [one.name for one in deployments], since, until)
            rates = {
                name: float(plug_in(np.array([one.events]), np.array([one.trials]))[0]) for name, one in past.items()
            }
    return make_blocks(asked, probe.half_width, rates)

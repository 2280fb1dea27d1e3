"""How much memory processes hold, second by second, and whether it grows: a straight line and how sure it is."""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, linear_regression

Sample = tuple[float, float]  #: seconds of the monotonic clock, MiB

#: Neighbouring samples are nearly the same number; means over this many equal spans are nearly independent.
_SPANS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """What a straight line through a process's memory says, over the time that was looked at."""

    seconds: float
    low: float  #: smallest sample, MiB
    high: float  #: largest sample, MiB
    slope: float  #: MiB per hour
    error: float  #: its standard error
    floors: tuple[float, float]  #: smallest samples of both halves, MiB

    @property
    def gained(self) -> float:
        """MiB gained over the whole time: twice what the floor of the second half is above that of the first.

        A leak raises what a process holds at its least. What a batch takes and gives back does not: after one the
        shipper holds 3 to 8 MiB more for some seconds, and the line's interval is as wide as that.
        """
        first, second = self.floors
        return 2 * (second - first)


@dataclass(slots=True)
class Memory:
    """Samples of several processes, by name."""

    samples: defaultdict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    def growth(self, since: float) -> dict[str, Growth]:
        """Fit a line to each process's samples from `since` on."""
        return {
            name: growth([(at, size) for at, size in samples if at >= since]) for name, samples in self.samples.items()
        }


@asynccontextmanager
async def watched(pids: Mapping[str, int], every: float = 1.0) -> AsyncIterator[Memory]:
    """Sample the resident memory of processes until the block ends."""
    memory = Memory()

    async def watch() -> None:
        while True:
            now = time.monotonic()
            for name, pid in pids.items():
                memory.samples[name].append((now, resident(pid)))
            await asyncio.sleep(every)

    watching = asyncio.create_task(watch())
    try:
        yield memory
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    if not watching.cancelled():
        watching.result()  # a process that is gone


def resident(pid: int) -> float:
    """MiB of a process that are in memory now."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    return math.nan


def growth(samples: Sequence[Sample]) -> Growth:
    """Fit a line by least squares to the means over equal spans of time, and take the smallest sample of each half."""
    began, ended = samples[0][0], samples[-1][0]
    span = (ended - began) / _SPANS
    means = []
    for number in range(_SPANS):
        inside = [size for at, size in samples if number * span <= at - began < (number + 1) * span]
        means.append(fmean(inside))
    hours = [(number + 0.5) * span / 3600 for number in range(_SPANS)]
    slope, intercept = linear_regression(hours, means)
    missed = math.fsum((mean - intercept - slope * hour) ** 2 for hour, mean in zip(hours, means, strict=True))
    spread = math.fsum((hour - fmean(hours)) ** 2 for hour in hours)
    sizes = [size for _, size in samples]
    return Growth(
        seconds=ended - began,
        low=min(sizes),
        high=max(sizes),
        slope=slope,
        error=math.sqrt(missed / (_SPANS - 2) / spread),
        floors=(
            min(size for at, size in samples if at - began < (ended - began) / 2),
            min(size for at, size in samples if at - began >= (ended - began) / 2),
        ),
    )

"""Samples: what people have said of a coder's draws, read for estimates and reports."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.live.corrections import ReviewSample
from auditor.store.review_draws import Bounds, Draw, count_frame, read_draws, read_labelled
from auditor.store.windows import move_windows, read_windows

#: Draws of a coder that are looked at: labels are the exchanges', so a new draw has those of the old ones.
MOST_DRAWS: Final = 10


async def read_samples(connection: AsyncConnection, coder_id: str, bounds: Bounds) -> list[ReviewSample]:
    """Read the samples of a coder's codings that people have labelled, the newest first."""
    samples = []
    for draw in await read_draws(connection, coder_id, bounds.as_of, MOST_DRAWS):
        sample = await _labelled(connection, draw, bounds)
        if sample is not None:
            samples.append(replace(sample, rows=await count_frame(connection, draw, bounds)))
    return samples


async def read_window_samples(
    connection: AsyncConnection, coder_id: str, starts: Mapping[str, datetime], as_of: datetime
) -> dict[str, list[ReviewSample]]:
    """Read the same for rolling windows, by their names, given where they begin: frames as sums, not counted again."""
    samples: dict[str, list[ReviewSample]] = {name: [] for name in starts}
    for draw in await read_draws(connection, coder_id, as_of, MOST_DRAWS):
        await move_windows(connection, draw.id, starts)
        frames = await read_windows(connection, draw.id, starts)
        for name, since in starts.items():
            sample = await _labelled(connection, draw, Bounds(since=since, until=as_of, as_of=as_of))
            if sample is not None:
                samples[name].append(replace(sample, rows=frames[name]))
    return samples


async def _labelled(connection: AsyncConnection, draw: Draw, bounds: Bounds) -> ReviewSample | None:
    """Read what people have labelled of a draw, without its frame, which is the dear part."""
    labelled, unlabelled = await read_labelled(connection, draw, bounds)
    if not labelled:
        return None
    return ReviewSample(draw=draw.id, origin=draw.origin, rows=(), labelled=labelled, unlabelled=unlabelled)

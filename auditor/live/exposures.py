"""Exposures in the report over a period: what the replays concluded in it came to, and whether they still say so."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from auditor.analysis.document import Json
from auditor.store.exposures import ExposureRow

Document = Mapping[str, Any]


def exposure_entries(rows: Iterable[ExposureRow]) -> list[Json]:
    """Write each replay with its groups, the oldest first; measures as ``comparison.json`` has them."""
    return [
        {
            "replay": replay,
            "concluded_at": own[0].concluded_at.isoformat(),
            "select": own[0].selection,
            "groups": [
                {
                    "by": {"deployment": deployment, "origin": origin, "route": route, "task": task},
                    "rubric": rubric,
                    "claim": claim,
                    "exposure": {row.metric: dict(row.exposure) for row in group},
                }
                for (deployment, origin, route, task, rubric, claim), group in groupby(own, _group)
            ],
        }
        for replay, own in _replays(rows)
    ]


def _replays(rows: Iterable[ExposureRow]) -> Iterator[tuple[str, list[ExposureRow]]]:
    # What one replay says was concluded at one moment, so the order of the store keeps it together.
    return ((replay, list(own)) for replay, own in groupby(rows, lambda row: row.replay_id))


def _group(row: ExposureRow) -> tuple[str, str, str | None, str | None, str, str | None]:
    return row.deployment, row.origin, row.route, row.task, row.rubric, row.claim


def exposure_inputs(rows: Iterable[ExposureRow]) -> list[Mapping[str, Json]]:
    """Digest what each replay says."""
    return [
        {"replay": replay, "n": len(own), "sha256": hashlib.sha256(orjson.dumps(own)).hexdigest()}
        for replay, own in _replays(rows)
    ]


def missing_exposures(report: Document, again: Document) -> Iterator[str]:
    """Name the replays that a report shows and that say something else now, or nothing."""
    have = _inputs(again)
    for replay, used in _inputs(report).items():
        if have.get(replay) != used:
            yield f"what replay {replay} came to is not what it says any more"


def _inputs(report: Document) -> dict[str, Document]:
    return {each["replay"]: each for each in _of_replays(report["inputs"])}


def _of_replays(inputs: Sequence[Document]) -> list[Document]:
    return [each for each in inputs if "replay" in each]

"""From the stored comparisons of peers to rows of estimates: deviation with its interval, and the verdict."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, format_duration
from auditor.live.estimates import Snapshot
from auditor.peers.subjects import compared, label_of, window_of
from auditor.stats.equivalence import Verdict
from auditor.store.comparisons import read_comparison
from auditor.store.estimates import EstimateRow

#: What stands in the place of the rubric.
PEERS: Final = "peers"
_INTERVAL: Final = "paired_t"


async def peer_rows(connection: AsyncConnection, config: Config, snapshot: Snapshot) -> list[EstimateRow]:
    """Give the rows of all that this configuration compares and that has been compared."""
    rows: list[EstimateRow] = []
    for entry in compared(config):
        found = await read_comparison(connection, label_of(entry))
        if found is not None:
            window = window_of(config, entry)
            like = EstimateRow(
                as_of=snapshot.as_of, deployment=None, origin=found.document["origin"], rubric=PEERS,
                condition=found.domain, window=format_duration(window), since=found.as_of - timedelta(seconds=window),
                coder="", metric="peer_deviation", seed=snapshot.seed,
            )  # fmt: skip
            rows += _rows(like, found.document)
    return rows


def _rows(like: EstimateRow, document: Mapping[str, Any]) -> Iterator[EstimateRow]:
    entries = [entry for one in document["comparisons"] for entry in one["targets"]]
    for entry in entries:
        for method, found in entry["instruments"].items():
            own = replace(
                like,
                deployment=entry["target"],
                coder=document["coders"].get(method, ""),
                detail={"domain": document["domain"], "method": method, "peers": entry["peers"]},
                n=found.get("n_questions", 0),
            )
            yield _deviation(own, found)
            yield from _verdicts(own, found)


def _deviation(like: EstimateRow, found: Mapping[str, Any]) -> EstimateRow:
    """Take the mean over the questions of the target's value less its peers' mean: 0 is a deployment like its peers."""
    paired = found.get("paired", found)
    if "diff" not in paired:
        return replace(like, missing=paired["missing"])
    return replace(like, value=paired["diff"], low=paired["low"], high=paired["high"], method=_INTERVAL)


def _verdicts(like: EstimateRow, found: Mapping[str, Any]) -> Iterator[EstimateRow]:
    given = found.get("verdict", found)
    margin = found.get("delta")
    if isinstance(given, Mapping):
        yield replace(like, metric="peer_verdict", missing=given["missing"])
        return
    for verdict in get_args(Verdict):
        detail = {**like.detail, "verdict": verdict, "margin": margin}
        yield replace(like, metric="peer_verdict", detail=detail, value=float(verdict == given))

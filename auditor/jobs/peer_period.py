"""Peers of a period: which of the configuration's comparisons have answers in it, and what they come to."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.analysis.document import canonical_bytes
from auditor.config import Config
from auditor.domain.ids import floor_id
from auditor.live.period import Compared
from auditor.peers.compared import make_document, read_answers
from auditor.peers.period import coders_in, digest_inputs, first_day, head_of, missing_answers, settings_in
from auditor.peers.subjects import answers_of, compared, instruments_of, settings_of
from auditor.store.peer_period import count_kept, newest_scorers, scored_between, scored_by
from auditor.store.period import Period

Document = Mapping[str, Any]


async def find_heads(
    connection: AsyncConnection, config: Config, since: datetime, until: datetime
) -> tuple[list[Document], datetime | None]:
    """Find what has answers in [since, until) that are scored, and when the newest of their scores was made.

    Returns
    -------
    tuple
        Heads of entries (``auditor.peers.period.head_of``), in the configuration's order, as they are read back from
        JSON; and the moment, ``None`` where there is nothing.
    """
    heads, moments = [], []
    among = scored_between(since, until)
    for entry in compared(config):
        settings = settings_of(config, entry)
        answers = answers_of(settings, floor_id(since), among)
        scorers = await newest_scorers(connection, answers, instruments_of(entry))
        if scorers:
            heads.append(json.loads(canonical_bytes(head_of(settings, scorers))))
            moments += [one.newest for one in scorers]
    return heads, max(moments, default=None)


async def compare_again(connection: AsyncConnection, head: Document, period: Period) -> Compared:
    """Compare what an entry of a report, or its head, says, as it was at ``as_of``."""
    settings, coders = settings_in(head), coders_in(head)
    queries = answers_of(settings, floor_id(period.since), scored_by(coders.values(), period))
    answered = [await read_answers(connection, one, coders, period.as_of) for one in queries]
    return Compared(
        entry={**head, "document": make_document(settings, coders, answered)},
        used=digest_inputs(head, [one for answers in answered for one in answers]),
    )


async def find_gone(connection: AsyncConnection, report: Document, again: Document, period: Period) -> list[str]:
    """Name what the comparisons of a report were made from that is gone."""
    since = min(period.since, first_day(report) or period.since)
    scorers = {scorer["id"] for head in report["peers"] for scorer in head["scorers"]}
    kept = await count_kept(connection, scorers, replace(period, since=since))
    return list(missing_answers(report, again, kept))

"""From scored answers in the store to the document of a comparison. Who scored is told by id: no scorer is loaded."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.analysis.document import Json, canonical_bytes
from auditor.config.audits import EMBEDDING
from auditor.errors import AuditError
from auditor.peers.instruments import Instruments
from auditor.peers.options import Options
from auditor.peers.run import analyse
from auditor.peers.score_rows import ScoreRow
from auditor.peers.score_table import ScoreCollector, ScoreTable
from auditor.peers.subjects import JUDGE, Group, Settings
from auditor.rows import BadRow
from auditor.store.peer_scores import ScoredAnswer, read_scored


async def read_answers(
    connection: AsyncConnection, answers: Select[Any], coders: Mapping[str, str], as_of: datetime | None = None
) -> list[ScoredAnswer]:
    """Read answers with what the scorers in ``coders`` (ids by instrument) have made of them, up to ``as_of``."""
    return await read_scored(connection, answers, coders.get(EMBEDDING), list(_judges(coders)), as_of)


def make_document(
    settings: Settings, coders: Mapping[str, str], answered: Sequence[Sequence[ScoredAnswer]]
) -> dict[str, Any]:
    """Compare each group's targets.

    Parameters
    ----------
    coders
        The scorers' ids by instrument.
    answered
        The answers of each of the settings' groups, in their order.

    Raises
    ------
    AuditError
        Vectors of one encoder do not fit together.
    """
    names = _judges(coders)
    made: list[Json] = [
        _compared(settings, group, _table(settings, answers, names))
        for group, answers in zip(settings.groups, answered, strict=True)
    ]
    whole: dict[str, Json] = {
        "domain": settings.label,
        "origin": settings.origin.value,
        "coders": dict(coders),
        "comparisons": [one for one in made if one is not None],
    }
    document: dict[str, Any] = json.loads(canonical_bytes(whole))
    return document


def _judges(coders: Mapping[str, str]) -> dict[str, str]:
    """Give the judges' names by their ids."""
    return {coder: name.removeprefix(JUDGE) for name, coder in coders.items() if name.startswith(JUDGE)}


def _table(settings: Settings, answers: Sequence[ScoredAnswer], names: Mapping[str, str]) -> ScoreTable:
    collector = ScoreCollector()
    for number, one in enumerate(answers, start=1):
        try:
            collector.add(_row(one, names), number)
        except BadRow as bad:
            raise AuditError(f"peers of {settings.label}: {one.deployment} on {one.question_id}: {bad}") from bad
    return collector.finish()


def _row(one: ScoredAnswer, names: Mapping[str, str]) -> ScoreRow:
    return ScoreRow(
        question_id=one.question_id,
        deployment=one.deployment,
        theme=one.theme,
        score={names[coder]: float(given) for coder, given in one.scores.items()},
        embedding=np.frombuffer(one.vector, dtype="<f4").tolist() if one.vector is not None else None,
        blocked=one.blocked,
    )


def _compared(settings: Settings, group: Group, table: ScoreTable) -> Json:
    targets: Sequence[str] = [name for name in group.targets if name in table.deployments]
    if not targets:
        return None
    known = Instruments(table).names
    hosts = {
        weights: tuple(name for name in names if name in table.deployments) for weights, names in settings.hosts.items()
    }
    options = Options(
        targets=tuple(targets),
        k=settings.k,
        margins={name: margin for name, margin in settings.margins.items() if name in known},
        hosts={weights: names for weights, names in hosts.items() if len(names) > 1},
    )
    return analyse(table, options)

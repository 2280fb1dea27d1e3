"""A comparison of peers comes back from the store as the document that was written."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.exchanges import NOON

from auditor.documents.peers import PeersDocument, StoredPeersDocument
from auditor.errors import InputError
from auditor.store.comparisons import (
    StoredComparison,
    peer_comparisons,
    read_comparison,
    read_inputs,
    write_comparison,
)
from auditor.store.engine import transaction

COMPARISON = StoredComparison(
    domain="power",
    as_of=NOON,
    inputs="first",
    document=StoredPeersDocument(
        domain="power",
        origin="probe",
        coders={"judge:j": "abc"},
        comparisons=[
            PeersDocument(
                schema="biasmeter.peers/1",
                k=2.0,
                alpha=0.05,
                blocked="answer",
                margin=None,
                margins={"j": 1.5},
                n_rows=0,
                n_skipped=0,
                n_questions=0,
                targets=[],
                hosts=[],
            )
        ],
    ),
)


async def test_the_newest_comparison_is_kept_as_it_was_written(engine: AsyncEngine) -> None:
    older = replace(COMPARISON, as_of=NOON - timedelta(hours=1), inputs="older")
    async with transaction(engine) as connection:
        assert await read_comparison(connection, "power") is None
        assert await read_inputs(connection, "power") is None
        await write_comparison(connection, COMPARISON)
        await write_comparison(connection, older)
        assert await read_comparison(connection, "power") == COMPARISON
        assert await read_inputs(connection, "power") == "first"


async def test_a_document_that_is_none_is_named(engine: AsyncEngine) -> None:
    async with transaction(engine) as connection:
        await write_comparison(connection, COMPARISON)
        await connection.execute(update(peer_comparisons).values(document={"domain": "power"}))
        with pytest.raises(InputError, match="the comparison of power: /: lacks the key 'origin'"):
            await read_comparison(connection, "power")

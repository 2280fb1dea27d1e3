"""A store with very many exchanges of clients, written by COPY: all alike but for what is picked by."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import asyncpg
from support.stores.exchanges import exchange

from auditor.domain.ids import new_id
from gateway.recording import codec
from gateway.storing.copy_rows import row_of
from gateway.storing.exchange_store import ExchangeStore

_BATCH = 20_000


async def fill(url: str, count: int, since: datetime, *, days: int = 10, words: int = 100) -> None:
    """Write exchanges evenly over some days, a tenth of them kept with a probability of 0.1; about ten bytes a word."""
    connection = await asyncpg.connect(url)
    try:
        store = ExchangeStore(connection)
        await store.prepare()
        for start in range(0, count, _BATCH):
            await store.write(
                [row_of(one) for one in _records(start, min(count, start + _BATCH), count, since, days, words)]
            )
        await connection.execute("ANALYZE exchanges, exchange_content")
    finally:
        await connection.close()


def _records(start: int, end: int, count: int, since: datetime, days: int, words: int) -> Iterator[bytes]:
    asked = '{"model":"gpt","messages":[{"role":"user","content":"Cooks hum in kitchen %d."}]}'
    said = '{"choices":[{"message":{"role":"assistant","content":"a word' + " and another" * words + '"}}]}'
    for number in range(start, end):
        at = since + timedelta(days=days) * number / count
        one = exchange(
            at,
            id=new_id(int(at.timestamp() * 1000), lambda bits, number=number: number % (1 << bits)),  # type: ignore[misc]
            inclusion=0.1 if number % 10 == 0 else 1.0,
            tags={"tenant": f"t{number % 7}"},
            request=(asked % number).encode(),
            response=said.encode(),
        )
        yield codec.encode(one)

"""An auditor that is restarted while the store has another schema: it waits, and the gateway beside it serves."""

import os
import signal

import aiohttp
from support.servers.product import Product
from support.waiting import eventually

from auditor.domain.schema import SCHEMA_VERSION


async def test_an_auditor_that_is_restarted_on_another_schema_stops_nobody(product: Product) -> None:
    with product.running("up") as running:
        await product.rows("UPDATE alembic_version SET version_num = '9999'")
        (killed,) = running.pids("-m auditor")
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: "cannot start (the store has schema 9999" in running.said())
        async with (
            aiohttp.ClientSession() as client,
            client.post(product.url + "/v1/chat/completions", json={"model": "gpt"}) as answer,
        ):
            assert answer.status == 200
        await product.rows("UPDATE alembic_version SET version_num = $1", SCHEMA_VERSION)
        await product.shipped()
        assert len(await product.rows("SELECT 1 FROM exchanges")) == 1
        await eventually(lambda: killed not in running.pids("-m auditor") != [])
        assert "Traceback" not in running.said()

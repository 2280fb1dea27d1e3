"""Auditor processes at work on one store: they share it, survive one another's death, and no coding doubles."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.servers.judge_server import serve
from support.servers.ports import free_port
from support.servers.product import Product, installation
from support.stores.audited_store import CTO, fetch, label_of, panel_answers, plan, ship
from support.waiting import PATIENCE, eventually

from auditor.instrument.pool import shipped_pool

POOL = shipped_pool()[:100]
SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 50}, "d2": {"D|D": 60, "D|E": 40}}
READY = r"listening on"


def settings(**more: Any) -> dict[str, Any]:
    deployments = [{"name": name, "base_url": "http://127.0.0.1:1/v1", "model": name} for name in ("d1", "d2")]
    return {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 1},
        "auditor": {"listen": f"127.0.0.1:{free_port()}"},
        "deployments": deployments,
        "routes": [{"model": "*", "deployments": ["d1"]}],
    } | more


@contextmanager
def auditors(folder: Path, url: str, number: int, **more: Any) -> Iterator[list[Product]]:
    """Installations on one store, each in a folder of its own, as on hosts of their own."""
    with ExitStack() as stack:
        made = []
        for index in range(number):
            own = folder / f"host{index}"
            own.mkdir()
            made.append(stack.enter_context(installation(own, settings(**more), url)))
        yield made


async def count(url: str, query: str) -> int:
    return int((await fetch(url, query))[0][0])


async def all_counted(url: str, exchanges: int) -> None:
    """Wait until as many answers are coded and counted as were stored."""

    async def holds() -> bool:
        return await count(url, "SELECT coalesce(sum(n), 0) FROM tallies") == exchanges

    await eventually(holds, patience=90)


async def all_estimated(url: str, exchanges: int) -> None:
    """Wait until as many answers are estimated from as were stored."""

    async def holds() -> bool:
        rows = await fetch(
            url,
            "SELECT sum(n) AS n FROM (SELECT DISTINCT deployment, n FROM estimates"
            " WHERE metric = 'coverage' AND condition = 'all' AND \"window\" = '30d') AS each_deployment",
        )
        return (rows[0]["n"] or 0) == exchanges

    await eventually(holds, patience=90)


def now() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


@contextmanager
def judged_auditors(folder: Path, url: str, judge_url: str) -> Iterator[list[Product]]:
    """Two auditors with a judge, whose server stands for the gateway, too: both speak the same protocol."""
    more = {
        "deployments": [*settings()["deployments"], {"name": "j", "base_url": judge_url, "model": "judge-model"}],
        "judges": [{"name": "judge", "deployment": "j"}],
    }
    with auditors(folder, url, 2, **more) as made:
        for index, each in enumerate(made):
            each.settings["auditor"]["gateway"] = {"url": judge_url, "key": f"sk-bias-{index}"}
            each.write()
        yield made


@pytest.mark.slow
async def test_two_processes_share_the_work_and_double_nothing(tmp_path: Path, migrated_url: str) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    async with serve(label_of) as judge:
        with (
            judged_auditors(tmp_path, migrated_url, judge.url) as (one, other),
            one.running("auditor", until=READY),
            other.running("auditor", until=READY),
        ):
            await ship(migrated_url, panel_answers(SHARES, now()))
            await all_counted(migrated_url, 200)
    codings = await count(migrated_url, "SELECT count(*) FROM codings")
    distinct = await count(migrated_url, "SELECT count(DISTINCT exchange_id) FROM codings")
    votes = await count(migrated_url, "SELECT count(*) FROM votes")
    assert (codings, distinct, votes, len(judge.bodies)) == (200, 200, 200, 200)
    assert await count(migrated_url, "SELECT sum(n) FROM tallies") == 200
    assert await count(migrated_url, "SELECT count(*) FROM biasmeter_jobs_log WHERE status = 'exception'") == 0
    # Each said its own key to the gateway: both of them were at work.
    said = {value for headers in judge.headers for name, value in headers.items() if name.lower() == "authorization"}
    assert said == {"Bearer sk-bias-0", "Bearer sk-bias-1"}


async def test_a_killed_worker_s_chunks_are_finished_by_another(tmp_path: Path, migrated_url: str) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    async with serve(label_of) as judge:
        with judged_auditors(tmp_path, migrated_url, judge.url) as (one, other):
            running = one.start("auditor", until=READY)
            await ship(migrated_url, panel_answers(SHARES, now()))

            async def begun() -> bool:
                return await count(migrated_url, "SELECT count(*) FROM codings") > 0

            await eventually(begun)
            running.process.send_signal(signal.SIGKILL)
            running.process.wait(PATIENCE)
            done = await count(migrated_url, "SELECT count(*) FROM codings")
            assert 0 < done < 200
            with other.running("auditor", until=READY):
                await all_counted(migrated_url, 200)
            assert await count(migrated_url, "SELECT count(*) FROM codings") == 200
            assert await count(migrated_url, "SELECT count(*) FROM votes") == 200
            # What was asked twice is at most what was in flight when the first one died.
            assert 200 <= len(judge.bodies) <= 200 + 32 * 3
            assert {headers["x-biasmeter-origin"] for headers in judge.headers} == {"judge"}
            assert {headers["x-biasmeter-deployment"] for headers in judge.headers} == {"j"}


@pytest.mark.slow
async def test_a_process_without_its_store_waits_and_goes_on(tmp_path: Path, migrated_url: str) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    with auditors(tmp_path, migrated_url, 1) as (one,), one.running("auditor", until=READY) as running:
        await eventually(lambda: _connected(migrated_url))
        await _cut(migrated_url)
        await ship(migrated_url, panel_answers(SHARES, now()))
        await all_estimated(migrated_url, 200)
        assert "Traceback" not in running.said()


async def _connected(url: str) -> bool:
    return await count(url, "SELECT count(*) FROM biasmeter_jobs_log") > 0


async def _cut(url: str) -> None:
    """End all connections but our own; the server's own vacuum is nobody's connection."""
    await fetch(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )


async def test_sigterm_ends_a_process_at_work_soon(tmp_path: Path, migrated_url: str) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    await ship(migrated_url, panel_answers(SHARES, now()))
    with auditors(tmp_path, migrated_url, 1) as (one,):
        running = one.start("auditor", until=READY)
        await one.found("SELECT 1 FROM codings LIMIT 1")
        assert running.stop(patience=15) == 0
        assert "Traceback" not in running.said()


NOT_HTTP = [b"x: a\0b", b"x: a\x07b", b"x y: 1", b"content-length: -1", b"transfer-encoding: chunked\r\n\r\nz\r\n"]


async def test_requests_that_are_not_http_are_refused_and_not_logged(tmp_path: Path, migrated_url: str) -> None:
    with auditors(tmp_path, migrated_url, 1) as (one,), one.running("auditor", until=READY) as running:
        before = running.said()
        host, port = one.settings["auditor"]["listen"].split(":")
        for line in NOT_HTTP:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /login HTTP/1.1\r\nhost: %b\r\n%b\r\n\r\n" % (host.encode(), line))
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
            assert answer.split(b" ", 2)[1] == b"400"
        assert running.said() == before


async def test_the_configuration_s_probes_are_sent_and_read_without_being_asked(product: Product) -> None:
    product.settings["gateway"]["workers"] = 1
    product.settings["probes"] = [{"plan": "sentinel", "deployments": ["alias"], "budget": {"calls": 20}, "share": 1.0}]
    product.write()
    with product.running("gateway"), product.running("auditor", until=READY):

        async def read() -> bool:
            return len(await product.rows("SELECT 1 FROM codings")) == 20

        await eventually(read, patience=60)
        sent = await product.rows("SELECT count(*) AS n FROM exchanges WHERE origin = 'probe'")
    assert sent[0]["n"] == 20


async def test_a_profile_that_cannot_be_used_is_refused_at_the_start(product: Product) -> None:
    rule = {"json": "verdict", "map": {"yes": "E", "no": "D"}}
    product.settings["audits"] = [{"name": "desk", "proposition": {"text": "It is so."}, "selection": rule}]
    product.write()
    done = product.run("auditor", "-c", str(product.config), check=False)
    assert done.returncode == 2
    assert "audits: desk: selection.json: 'verdict' is not a path such as" in done.stderr
    assert done.stderr.count("\n") == 1

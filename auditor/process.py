"""The auditor process: serves its API, and does its part of the audit's work (``auditor.jobs``)."""

import asyncio
import logging
import signal

from aiohttp import web
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor import lifeline
from auditor.api.app import Served, build_app
from auditor.api.door import Door
from auditor.config import Config
from auditor.domain.keys import Right
from auditor.errors import UsageError
from auditor.export.exposition import Exposition
from auditor.jobs.work import utc_now
from auditor.jobs.worker import run_jobs
from auditor.live.profiles import compile_profile
from auditor.store.engine import make_engine, reading
from auditor.store.keys import list_keys
from auditor.store.schema import check_version

log = logging.getLogger(__name__)


async def serve(config: Config, database_url: str, *, child: bool = False) -> None:
    """Run until SIGTERM or SIGINT, or as a ``child`` until the parent is gone.

    Raises
    ------
    SchemaMismatch, StoreUnavailable
        The store is of another version, or does not answer at the start.
    ConfigError
        An audit profile holds a path that is none.
    UsageError
        The address is taken, or can be reached from elsewhere and no key has the right to read.
    """
    for audit in config.audits:
        compile_profile(audit)
    engine = make_engine(database_url)
    try:
        await check_version(engine)
        listen = config.auditor.listen
        if not listen.is_loopback:
            await _need_a_key(engine, str(listen))
    except BaseException:
        await engine.dispose()
        raise
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    watching = asyncio.create_task(lifeline.watch_parent(stop.set)) if child else None
    exposition = Exposition()
    door = Door(engine, loopback=listen.is_loopback)
    served = Served(
        engine=engine,
        door=door,
        config=config,
        clock=utc_now,
        registry=CollectorRegistry(),
        exposed=lambda: exposition.text,
    )
    runner = web.AppRunner(build_app(served), access_log=None)
    await runner.setup()
    working: asyncio.Task[None] | None = None
    following: asyncio.Task[None] | None = None
    try:
        await _start(runner, config)
        following = asyncio.create_task(exposition.follow(engine))
        working = asyncio.create_task(run_jobs(config, database_url, stop))
        if child:
            lifeline.report(ready=True)
        await stop.wait()
    finally:
        stop.set()
        if following is not None:
            following.cancel()
        if working is not None:
            await working
        await runner.cleanup()
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _start(runner: web.AppRunner, config: Config) -> None:
    listen = config.auditor.listen
    site = web.TCPSite(runner, listen.host or None, listen.port)
    try:
        await site.start()
    except OSError as error:
        raise UsageError(f"auditor.listen: {listen}: {error.strerror or error}") from None
    host, port = runner.addresses[0][:2]
    log.info("listening on http://%s:%d/", f"[{host}]" if ":" in host else host, port)


async def _need_a_key(engine: AsyncEngine, listen: str) -> None:
    async with reading(engine) as connection:
        keys = [key for key, _ in await list_keys(connection)]
    if not any(Right.AUDIT in key.rights and not key.revoked for key in keys):
        raise UsageError(
            f"auditor.listen: {listen} can be reached from other machines, and no key may read the audit; "
            "run: tiltmeter key create --name NAME --allow audit -c FILE (or listen on 127.0.0.1)"
        )

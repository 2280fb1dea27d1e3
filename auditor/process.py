"""Run the auditor process: its API and the jobs (``auditor.jobs``).

After a reload the running jobs come to their next stop and continue with the new configuration. The API goes on.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from functools import partial

from aiohttp import web
from aiohttp.http import HttpProcessingError
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor import parent_pipe
from auditor.access import pinned_model
from auditor.api.app import ApiServices, build_app
from auditor.api.auth import ApiAuth
from auditor.config import Address, Config, Deployment, reload
from auditor.config.reload import describe
from auditor.errors import UsageError
from auditor.export.families import EstimateExposition
from auditor.export.process_series import process_registry
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.jobs.queue_worker import run_jobs
from auditor.probes.forecast import PlanForecast, count_plan_tokens, forecast
from auditor.probes.plan import PlanSpec, make_plan
from auditor.store.engine import make_engine, transaction
from auditor.store.keys import list_keys
from auditor.store.schema import check_version
from auditor.work import utc_now

log = logging.getLogger(__name__)

_LEXICON = "lexicon"


class _Auditing:
    """The current configuration, and whether the process is to end."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ended = asyncio.Event()
        self._stop_jobs = asyncio.Event()  # set when the jobs are to stop, to end or to reload

    def follow_signals(self, read: Callable[[], Config] | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)
        if read is not None:
            reload.on_hangup(partial(self._reread, read), self.end)

    async def follow_parent(self) -> None:
        await parent_pipe.watch_parent(self.end, lambda bootstrap: self._change(bootstrap.config))

    def end(self) -> None:
        self.ended.set()
        self._stop_jobs.set()

    def _change(self, config: Config) -> None:
        log.info("reloaded: %s; configuration %s", describe(self.config, config), config.config_hash)
        self.config = config
        self._stop_jobs.set()

    def _reread(self, read: Callable[[], Config]) -> None:
        try:
            self._change(reload.reread(self.config, read))
        except UsageError as error:
            log.warning("nothing was reloaded: %s", error)

    async def work(self, database_url: str) -> None:
        while not self.ended.is_set():
            self._stop_jobs = asyncio.Event()
            await run_jobs(self.config, database_url, self._stop_jobs)


async def serve(config: Config, database_url: str, read: Callable[[], Config] | None = None) -> None:
    """Run until SIGTERM or SIGINT. On SIGHUP, read the configuration again with ``read``, and use it if it is valid.

    Without ``read`` this process is a child: it ends with its parent, and gets a new configuration from it.

    Raises
    ------
    SchemaMismatch, StoreUnavailable
        The store is of another version, or does not answer at the start.
    UsageError
        The address is taken, or can be reached from elsewhere and no key has the right to read.
    """
    engine = await _open_store(database_url, config.auditor.listen)
    auditing = _Auditing(config)
    auditing.follow_signals(read)
    exposition = EstimateExposition()
    served = ApiServices(
        engine=engine,
        auth=ApiAuth(engine, loopback=config.auditor.listen.is_loopback, public_url=config.auditor.public_url),
        config=lambda: auditing.config,
        clock=utc_now,
        registry=process_registry(),
        exposed=lambda: exposition.text,
    )
    logging.getLogger("aiohttp.server").addFilter(_is_not_the_clients)
    runner = web.AppRunner(build_app(served), access_log=None)
    await runner.setup()
    beside = [asyncio.create_task(exposition.follow(engine))]
    try:
        await _start(runner, config)
        if read is None:
            beside.append(asyncio.create_task(auditing.follow_parent()))
            parent_pipe.report(ready=True)
        await auditing.work(database_url)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await runner.cleanup()


async def _open_store(database_url: str, listen: Address) -> AsyncEngine:
    engine = make_engine(database_url)
    try:
        await check_version(engine)
        if not listen.is_loopback:
            await _need_a_key(engine, str(listen))
    except BaseException:
        await engine.dispose()
        raise
    return engine


def _is_not_the_clients(record: logging.LogRecord) -> bool:
    """Leave requests that are not valid HTTP out of the log: their senders get 400, and could fill it."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


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
    async with transaction(engine) as connection:
        keys = [key for key, _ in await list_keys(connection)]
    if not any(key.role is not None and not key.revoked for key in keys):
        raise UsageError(
            f"auditor.listen: {listen} can be reached from other machines, and no key may read the audit; "
            "run: biasmeter key create --name NAME --role admin -c FILE (or listen on 127.0.0.1)"
        )


def startup_notice(config: Config) -> Iterator[str]:
    """Yield the lines that the auditor writes when it starts: what its numbers lack, and how to begin."""
    if set(config.panel.judges) <= {_LEXICON}:
        yield (
            "NOTE: no judges are configured. The built-in lexicon codes the elaborations. It is a coarse word list and "
            "misses irony and qualification. Configure judges before you rely on a number (docs/judges.md)."
        )
    judging = {judge.deployment for judge in config.judges}
    audited = [deployment for deployment in config.deployments if deployment.name not in judging]
    unnamed = [deployment.name for deployment in audited if not _has_model(config, deployment)]
    if unnamed:
        names = ", ".join(unnamed)
        yield f"To probe {names}, set its model (deployments[].model; without a configuration OPENAI_MODEL)."
    planned = make_plan(PlanSpec(design=Design.SENTINEL, statements=shipped_pool(), seed=config.seed))
    for needed in forecast(planned, count_plan_tokens(planned), audited):
        yield f"A first audit of {needed.deployment} needs {_needs(needed)}."
    if not config.probes:
        file = config.file_argument
        yield f"No probes are sent until you start them, in the console (http://{config.auditor.listen}/start) or with:"
        yield f"biasmeter audit plan -c {file}"
        yield f"biasmeter audit run -c {file} --yes"


def _has_model(config: Config, deployment: Deployment) -> bool:
    try:
        pinned_model(config, deployment)
    except UsageError:
        return False
    return True


def _needs(needed: PlanForecast) -> str:
    tokens = (needed.usage.prompt + needed.usage.completion) / 1000
    cost = "an unknown price (deployments[].price)" if needed.usd is None else f"about {needed.usd:.2f} USD"
    return f"{needed.calls} calls, about {tokens:.0f}k tokens, {cost} and {needed.seconds / 60:.0f} minutes"

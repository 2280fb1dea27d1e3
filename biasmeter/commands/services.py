"""``biasmeter up``, ``gateway`` and ``auditor``: the processes of the product."""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.terminal.options import ConfigOption

if TYPE_CHECKING:
    from auditor.bootstrap import AuditorBootstrap
    from auditor.config import Config

app = typer.Typer()


@app.command()
def up(
    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", help="The configuration file; default: OPENAI_API_KEY's deployment."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65534,
            help="Without a configuration: the gateway's port; the auditor takes the next one. Default: 4000.",
        ),
    ] = None,
) -> None:
    """Run the whole product on this machine: embedded store, gateway and auditor.

    Stops on Ctrl-C. Reads the configuration again on SIGHUP.
    """
    from auditor.bootstrap import AuditorBootstrap, AuditorTask
    from auditor.coding.profiles import compile_profile
    from auditor.config import Config, load
    from auditor.domain.log_lines import start_logging
    from auditor.parent_pipe import pack
    from auditor.postgres.embedded import open_store
    from biasmeter.commands.zero_config import zero_config
    from gateway.processes import supervisor

    start_logging("biasmeter")

    if config is not None and port is not None:
        raise UsageError("--port: the configuration file names the addresses (gateway.listen, auditor.listen)")

    def read() -> Config:
        loaded = load(config, os.environ) if config is not None else zero_config(os.environ, port)
        for audit in loaded.audits:
            compile_profile(audit)
        return loaded

    loaded = read()
    _announce(loaded, os.environ)
    known = supervisor.knows_keys(loaded)
    with open_store(loaded.data_dir, loaded.database_url(os.environ), required=not known) as database_url:

        def bootstrap(task: AuditorTask, config: Config) -> AuditorBootstrap:
            return AuditorBootstrap(task=task, config=config, database_url=database_url)

        try:
            migration = bootstrap(AuditorTask.MIGRATE, loaded.without_upstream_keys())
            _run_auditor(migration, loaded.environment(os.environ))
        except AuditError as error:
            if isinstance(error, UsageError) or not known:
                raise
            logging.getLogger("biasmeter").warning("%s; the gateway serves the client keys that it knows", error)
        auditor = supervisor.Sidecar(
            name="auditor", module="auditor", bootstrap=lambda config: pack(bootstrap(AuditorTask.SERVE, config))
        )
        supervisor.run(loaded, database_url, read, [auditor])


def _announce(config: "Config", environ: Mapping[str, str]) -> None:
    """Say what is started, and where the data are, before anything slow begins."""
    log = logging.getLogger("biasmeter")
    log.info(
        "starting: gateway for applications http://%s/v1, console for people http://%s/; stop with Ctrl-C",
        config.gateway.listen,
        config.auditor.listen,
    )
    names = [f"{one.name} ({one.base_url})" for one in config.deployments]
    log.info("forwards to %s", ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""))
    folder = config.data_dir
    if config.database_url(environ) is not None:
        log.info("data: your PostgreSQL, and %s for copies that wait for it", folder)
    elif (folder / "postgres").exists():
        log.info("data: %s", folder)
    else:
        log.info("data: %s (new; a database is created there, which takes some seconds)", folder)


def _run_auditor(bootstrap: "AuditorBootstrap", environment: dict[str, str]) -> None:
    """Run one task in an auditor process, because the gateway's processes do not load the auditor's libraries."""
    import json
    import subprocess

    from auditor.parent_pipe import HOPELESS, pack

    done = subprocess.run(
        [sys.executable, "-m", "auditor"],
        input=pack(bootstrap),
        stdout=subprocess.PIPE,
        env=environment,
        check=False,
    )
    if done.returncode:
        reason = json.loads(done.stdout or b"{}").get("error", f"the auditor ended with status {done.returncode}")
        kind = UsageError if done.returncode == HOPELESS else AuditError
        raise kind(f"{bootstrap.task}: {reason}")


@app.command("gateway")
def gateway_command(
    config: ConfigOption,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: gateway.workers.")] = None,
) -> None:
    """Run the gateway: forward traffic, spool copies, ship them to the store.

    Ends on SIGTERM when drained; reads the configuration again on SIGHUP.
    """
    from auditor.config import Config, load
    from auditor.domain.log_lines import start_logging
    from auditor.postgres.embedded import open_store
    from gateway.processes import supervisor

    start_logging("biasmeter gateway")

    def read() -> Config:
        loaded = load(config, os.environ)
        if workers is None:
            return loaded
        return loaded.model_copy(update={"gateway": loaded.gateway.model_copy(update={"workers": workers})})

    loaded = read()
    url, required = loaded.database_url(os.environ), not supervisor.knows_keys(loaded)
    with open_store(loaded.data_dir, url, required=required) as database_url:
        supervisor.run(loaded, database_url, read)


@app.command("auditor")
def _auditor(config: ConfigOption) -> None:
    """Run the auditor: coding, estimates, monitoring and the API. Stops on SIGTERM; reloads on SIGHUP."""
    from auditor.coding.profiles import compile_profile
    from auditor.config import Config, load
    from auditor.domain.log_lines import start_logging
    from auditor.postgres.embedded import open_store
    from auditor.process import serve

    start_logging("biasmeter auditor")
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each judge's call helps nobody

    def read() -> Config:
        loaded = load(config, os.environ)
        for audit in loaded.audits:
            compile_profile(audit)
        return loaded

    loaded = read()
    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        asyncio.run(serve(loaded, database_url, read))

"""``biasmeter up``, ``gateway`` and ``auditor``: the processes of the product."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.terminal.options import ConfigOption

if TYPE_CHECKING:
    from auditor.bootstrap import AuditorBootstrap
    from auditor.config import Config, Deployment

app = typer.Typer()

#: The file in ``data_dir`` with the configuration of ``biasmeter up`` without one, so that other commands find it.
_ZERO_CONFIG: Final = "without-configuration.yaml"
_ZERO_CONFIG_HEAD: Final = """\
# Written by `biasmeter up` without a configuration file, again at each start, for other commands (-c).
# The deployment's key is not here: only `biasmeter up` needs it, from its environment.
"""
#: Seconds in which a server must list its models.
_PATIENCE: Final = 3.0


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
    from gateway.processes import supervisor

    start_logging("biasmeter")

    if config is not None and port is not None:
        raise UsageError("--port: the configuration file names the addresses (gateway.listen, auditor.listen)")

    def read() -> Config:
        loaded = load(config, os.environ) if config is not None else _zero_config(os.environ, port)
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


def _zero_config(environ: Mapping[str, str], port: int | None) -> "Config":
    """Make the configuration from the environment, and write it into its ``data_dir``.

    Audits ask for ``OPENAI_MODEL``, else for the first model that the server lists, else for a usual one of OpenAI's.

    Raises
    ------
    ConfigError
        Neither a key nor a base URL is set, or one of them cannot be used.
    UsageError
        The file cannot be written.
    """
    import yaml

    from auditor.config import default_config
    from auditor.config.loading import OPENAI_MODEL, OPENAI_URL
    from auditor.postgres.folder import make_public_folder

    (deployment,) = default_config(environ, port).deployments
    model = environ.get("OPENAI_MODEL") or _first_model(deployment)
    if model is None and deployment.base_url == OPENAI_URL:
        model = OPENAI_MODEL
    config = default_config(environ, port, model)
    path = config.data_dir / _ZERO_CONFIG
    try:
        make_public_folder(path.parent)
        path.write_text(_ZERO_CONFIG_HEAD + yaml.safe_dump(_settings_of(config), sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return config.from_file(path)


def _first_model(deployment: "Deployment") -> str | None:
    """Return the first model of a server of one's own; of OpenAI's long list the first means nothing."""
    import urllib.request

    from auditor.config.loading import OPENAI_URL

    if deployment.base_url == OPENAI_URL:
        return None
    request = urllib.request.Request(deployment.url("models"), headers=deployment.fixed_headers())  # noqa: S310 -- checked
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 -- as above
            listed = json.load(answer)
        model = listed["data"][0]["id"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return model if isinstance(model, str) and 0 < len(model) <= 200 and model.isprintable() else None


def _settings_of(config: "Config") -> dict[str, object]:
    (deployment,) = config.deployments
    shown = {"name": deployment.name, "base_url": deployment.base_url, "vendor": deployment.vendor}
    return {
        "data_dir": str(Path(config.data_dir).absolute()),
        "gateway": {"listen": str(config.gateway.listen)},
        "auditor": {"listen": str(config.auditor.listen)},
        "deployments": [{name: value for name, value in shown.items() if value is not None}],
        "routes": [
            {
                "model": route.model,
                "deployments": [entry.name for entry in route.deployments],
                "sample": route.sample,
                "capture": route.capture,
            }
            for route in config.routes
        ],
    }


def _announce(config: "Config", environ: Mapping[str, str]) -> None:
    """Say what is started, and where the data are, before anything slow begins."""
    log = logging.getLogger("biasmeter")
    log.info(
        "starting: gateway for applications http://%s/v1, console for people http://%s/; stop with Ctrl-C",
        config.gateway.listen,
        config.auditor.listen,
    )
    names = [f"{deployment.name} ({deployment.base_url})" for deployment in config.deployments]
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
    from auditor.config import Config, load_without_upstream_keys
    from auditor.domain.log_lines import start_logging
    from auditor.postgres.embedded import open_store
    from auditor.process import serve

    start_logging("biasmeter auditor")
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each judge's call helps nobody

    def read() -> Config:
        loaded = load_without_upstream_keys(config, os.environ)
        for audit in loaded.audits:
            compile_profile(audit)
        return loaded

    loaded = read()
    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        asyncio.run(serve(loaded, database_url, read))

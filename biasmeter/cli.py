"""Join the commands of the three packages, and turn their errors into one line and an exit status.

Exit status: 0 ok, 1 the work failed, 2 bad usage or configuration.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from auditor.cli import app as auditor_app
from auditor.errors import AuditError, UsageError
from biasmeter import __version__, deploy_files, erase
from biasmeter.examples import add_examples
from biasmeter.extras import missing_extra
from gateway.cli import app as gateway_app
from gateway.primitives import IS_COMPILED
from gateway.recording.redaction.search import may_hold
from replay.cli import app as replay_app

if TYPE_CHECKING:
    from auditor.bootstrap import AuditorBootstrap
    from auditor.config import Config

app = typer.Typer(
    name="biasmeter",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (gateway_app, auditor_app, replay_app):
    app.registered_commands.extend(part.registered_commands)
    app.registered_groups.extend(part.registered_groups)


def _print_version(wanted: bool) -> None:
    if wanted:
        in_use = "not in use" if may_hold is None or not IS_COMPILED else "in use"
        typer.echo(f"biasmeter {__version__} (optional C extension: {in_use})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure the bias of deployed language models, in front of production traffic."""


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
    from biasmeter.zero_config import zero_config
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


app.registered_commands.extend(erase.app.registered_commands)
app.registered_commands.extend(deploy_files.app.registered_commands)
add_examples(app)


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


@cache
def command_tree() -> Callable[[], object]:
    """Return all commands with their options: made once, because that takes longer than most commands."""
    return typer.main.get_command(app)


def main() -> None:
    """Run one command."""
    # Products here are small: more threads cost processors that others need, and change last digits between machines.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        command_tree()()
    except AuditError as error:
        _fail(str(error), error.exit_status)
    except ModuleNotFoundError as error:
        advice = missing_extra(error)
        if advice is None:
            raise
        _fail(f"{_command_name(sys.argv[1:])} needs {advice}", UsageError.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(message: str, status: int) -> NoReturn:
    sys.stderr.write(f"biasmeter: {message}\n")
    sys.exit(status)


def _command_name(arguments: list[str]) -> str:
    """Return the words of ``arguments`` that name the command, such as ``key list``."""
    command: object = command_tree()
    names = []
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument)
        if command is None:
            break
        names.append(argument)
    return " ".join(names)

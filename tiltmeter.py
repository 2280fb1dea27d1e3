"""The command line: joins the commands of the three packages, and turns their errors into one line and an exit status.

Exit status: 0 ok, 1 the work failed, 2 bad usage or configuration.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import app as auditor_app
from auditor.errors import AuditError
from gateway.cli import app as gateway_app
from replay.cli import app as replay_app

if TYPE_CHECKING:
    from auditor.bootstrap import AuditorBootstrap

app = typer.Typer(
    name="tiltmeter",
    no_args_is_help=True,
    help="Measure the bias of deployed language models, in front of production traffic.",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (gateway_app, auditor_app, replay_app):
    app.registered_commands.extend(part.registered_commands)
    app.registered_groups.extend(part.registered_groups)


@app.command()
def up(
    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", help="The configuration file; default: OPENAI_API_KEY's deployment."),
    ] = None,
) -> None:
    """Run all of it on this machine: embedded store, gateway, auditor.

    Ends on Ctrl-C; reads the configuration again on SIGHUP.
    """
    import logging

    from auditor.bootstrap import AuditorBootstrap, Task
    from auditor.config import Config, default_config, load
    from auditor.lifeline import pack
    from auditor.live.profiles import compile_profile
    from auditor.store.opening import opened
    from gateway import supervisor

    logging.basicConfig(level=logging.INFO, format="tiltmeter: %(message)s")

    def read() -> Config:
        loaded = load(config, os.environ) if config is not None else default_config(os.environ)
        for audit in loaded.audits:
            compile_profile(audit)
        return loaded

    loaded = read()
    with opened(loaded.data_dir, loaded.database_url(os.environ)) as database_url:

        def told(task: Task, config: Config) -> AuditorBootstrap:
            return AuditorBootstrap(task=task, config=config, database_url=database_url)

        _tell_auditor(told(Task.MIGRATE, loaded))
        auditor = supervisor.Beside(
            name="auditor", module="auditor", bootstrap=lambda config: pack(told(Task.SERVE, config))
        )
        supervisor.run(loaded, database_url, read, [auditor])


def _tell_auditor(told: "AuditorBootstrap") -> None:
    """Have an auditor process do one thing: its libraries are not for the gateway's processes."""
    import json
    import subprocess

    from auditor.lifeline import pack

    done = subprocess.run([sys.executable, "-m", "auditor"], input=pack(told), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        said = json.loads(done.stdout or b"{}").get("error", f"the auditor ended with status {done.returncode}")
        raise AuditError(f"{told.task}: {said}")


def main() -> None:
    """Run one command."""
    # Products here are small: more threads cost processors that others need, and change last digits between machines.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except AuditError as error:
        sys.stderr.write(f"tiltmeter: {error}\n")
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

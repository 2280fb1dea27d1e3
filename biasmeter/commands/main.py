"""Join the commands, and turn their errors into one line and an exit status.

Exit status: 0 ok, 1 the work failed, 2 bad usage or configuration.
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, NoReturn

import typer

from auditor.errors import AuditError, UsageError
from auditor.extras import missing_extra
from biasmeter import __version__
from biasmeter.commands import (
    analysis,
    arms,
    audit,
    bulk,
    chain,
    coding,
    configuration,
    decisions,
    deploy_files,
    difference,
    domains,
    exchanges,
    findings,
    glossary,
    interchange,
    judges,
    keys,
    peers,
    pool,
    replay,
    report,
    review,
    services,
    simulation,
    store,
)
from biasmeter.commands.help import GroupedCommands, add_help
from gateway.primitives import IS_COMPILED
from gateway.recording.redaction.search import may_hold

app = typer.Typer(
    name="biasmeter",
    cls=GroupedCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    *(analysis, bulk, chain, coding, configuration, decisions, deploy_files, difference, exchanges, findings),
    *(glossary, interchange, peers, pool, replay, report, services, simulation, store),
):
    app.registered_commands.extend(module.app.registered_commands)
app.add_typer(arms.app, name="arms")
app.add_typer(audit.app, name="audit")
app.add_typer(domains.app, name="domains")
app.add_typer(findings.findings_app, name="findings")
app.add_typer(findings.references_app, name="references")
app.add_typer(judges.app, name="judges")
app.add_typer(keys.app, name="key")
app.add_typer(review.app, name="review")
add_help(app)


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


@cache
def command_tree() -> Callable[[], object]:
    """Return all commands with their options: made once, because that takes longer than most commands."""
    return typer.main.get_command(app)


def main() -> None:
    """Run one command."""
    # Most files that commands write may hold prompts, answers or keys: they are their user's alone.
    os.umask(0o077)
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

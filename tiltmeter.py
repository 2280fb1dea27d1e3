"""The command line: joins the commands of the three packages, and turns their errors into one line and an exit status.

Exit status: 0 ok, 1 the work failed, 2 bad usage or configuration.
"""

import sys

import typer

from auditor.cli import app as auditor_app
from auditor.errors import AuditError

app = typer.Typer(
    name="tiltmeter",
    no_args_is_help=True,
    help="Measure the bias of deployed language models, in front of production traffic.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.registered_commands.extend(auditor_app.registered_commands)
app.registered_groups.extend(auditor_app.registered_groups)


def main() -> None:
    """Run one command."""
    try:
        app()
    except AuditError as error:
        sys.stderr.write(f"tiltmeter: {error}\n")
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

"""``biasmeter import-config``: convert another gateway's configuration. ``auditor.config.litellm`` does the work."""

import json
from pathlib import Path
from typing import Annotated

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.options import DEFAULT_CONFIG, JsonOption

app = typer.Typer()


@app.command("import-config")
def import_config(
    source: Annotated[Path, typer.Argument(metavar="LITELLM_YAML", help="The configuration of a LiteLLM proxy.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="File to write.")] = Path(DEFAULT_CONFIG),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with status 1 if something breaks traffic; the file is written.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert the configuration of a LiteLLM proxy, and list what is not carried over by its consequence.

    First what breaks traffic, then what changes behaviour, then what has no effect on requests. Copies no secret.
    """
    from auditor.config.litellm import Severity, convert, summary

    made = convert(_read(source), str(source))
    _write(out, made.text, force=force)
    for line in summary(made.not_carried):
        typer.echo(line, err=True)
    breaking = sum(left.severity is Severity.BREAKS for left in made.not_carried)
    if as_json:
        not_carried = [{"at": left.at, "why": left.why, "severity": left.severity} for left in made.not_carried]
        document = {
            "written": str(out),
            "deployments": made.deployments,
            "routes": made.routes,
            "not_carried": not_carried,
        }
        typer.echo(json.dumps(document))
    else:
        counts = f"{len(made.deployments)} deployments, {len(made.routes)} routes"
        typer.echo(
            f"{out}: {counts}; {len(made.not_carried)} settings not carried over, of which {breaking} break traffic"
        )
    if strict and breaking:
        raise AuditError(f"{breaking} settings break traffic until somebody acts (--strict)")


def _read(source: Path) -> str:
    try:
        return source.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{source}: is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{source}: cannot be read: {reason}") from None


def _write(out: Path, text: str, *, force: bool) -> None:
    try:
        with out.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{out}: exists already; --force overwrites it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{out}: cannot be written: {reason}") from None

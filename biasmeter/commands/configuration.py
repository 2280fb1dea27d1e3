"""``biasmeter init``, ``check`` and ``import-config``: write, validate and convert the configuration."""

import asyncio
import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from auditor.errors import AuditError, ConfigError, UsageError
from biasmeter.terminal.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from biasmeter.terminal.tables import table_lines

app = typer.Typer()

_OPENAI: Final = "https://api.openai.com/v1"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TEMPLATE: Final = """\
# Biasmeter's configuration. Documentation: docs/gateway.md, docs/deploy.md. Check it: biasmeter check -c {file}
#
# Run the gateway (127.0.0.1:4000) and the auditor (127.0.0.1:4001):   biasmeter up -c {file}
# Then change one line of the application:   base_url="http://127.0.0.1:4000/v1"

data_dir: {data_dir}   # spool, counters, and the embedded PostgreSQL
# store: {{url: "${{BIASMETER_DATABASE_URL}}"}}   # a PostgreSQL of your own instead of the embedded one

deployments:
  - name: {name}
    base_url: {base_url}
{key}    model: {model}   # what audits ask for; applications may ask for other models
    # price: {{input: 2.5, output: 10}}   # USD per million tokens, for the cost of audits and budgets of keys

routes:
  - model: "*"   # whatever applications ask for
    deployments: [{name}]
    sample: {sample}   # share of the exchanges of which a copy is kept
    capture: {capture}   # off, hashed (facts and hashes), or full (with prompts and answers)
    # judge: true   # allow judges to read prompts and answers of this route; needs capture: full
    # audit: desk   # how answers are read; see docs/selection.md

# The lexicon needs no network, and is coarse. Declare language models as judges for numbers that you publish:
# docs/judges.md
panel: {{judges: [lexicon]}}

# Planned audits spend money, so none is active. This one asks 360 questions a day:
# probes: [{{plan: sentinel, deployments: all, every: 1d, budget: {{calls: 400, usd: 5}}}}]

retention: {{content: 30d, facts: 400d}}
"""
_COLOURS: Final = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "problem": typer.colors.RED}
_COLUMNS: Final = ("state", "kind", "name", "where", "detail")


@app.command("init")
def init(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="File to write.")] = Path(DEFAULT_CONFIG),
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The deployment's OpenAI-compatible address.", show_default=_OPENAI),
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environment variable with its key; empty for a server without keys.",
            show_default="OPENAI_API_KEY",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model that audits ask for.", show_default="gpt-4o-mini")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="A name for the deployment. Default: the model's.")
    ] = None,
    sample: Annotated[float, typer.Option(help="Share of the exchanges that are copied, over 0 and at most 1.")] = 0.05,
    capture: Annotated[str, typer.Option(help="off, hashed or full.")] = "hashed",
) -> None:
    """Write a commented configuration with one deployment. Asks for what no option gives; never overwrites a file.

    Without a terminal nothing is asked: the defaults hold.
    """
    if out.exists():
        raise UsageError(f"{out}: is there already; name another file with -o")
    base_url = _ask("Address of the deployment (OpenAI-compatible)", base_url, _OPENAI)
    local = (urlsplit(base_url).hostname or "") in {"127.0.0.1", "localhost", "::1"}
    key_env = _ask("Environment variable with its key, or - for none", key_env, "-" if local else "OPENAI_API_KEY")
    model = _ask("Model that audits ask for", model, "gpt-4o-mini")
    name = _ask(
        "A name for the deployment", name, re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-")[:64] or "deployment"
    )
    key_env = "" if key_env == "-" else key_env
    if key_env and not _VARIABLE.fullmatch(key_env):
        raise UsageError(f"--key-env {key_env!r} is not the name of an environment variable")
    text = _TEMPLATE.format(
        file=out, data_dir="biasmeter-data", name=_yaml(name), base_url=_yaml(base_url), model=_yaml(model),
        sample=sample, capture=_yaml(capture), key=f"    api_key: ${{{key_env}}}\n" if key_env else "",
    )  # fmt: skip
    _validate(text, out, key_env)
    _write(out, text)
    typer.echo(f"{out}: one deployment, {name}. Next:")
    if key_env:
        typer.echo(f"  export {key_env}=...")
    typer.echo(f"  biasmeter check -c {out}        connect to what it names")
    typer.echo(f"  biasmeter up -c {out}           gateway on 127.0.0.1:4000, auditor on 127.0.0.1:4001")
    typer.echo(f"  biasmeter audit plan -c {out}   what an audit would cost; sends nothing")
    typer.echo(f"  biasmeter audit run -c {out}    send it; http://127.0.0.1:4001/ shows the first estimate")


def _ask(what: str, option: str | None, default: str) -> str:
    if option is not None:
        return option
    if not sys.stdin.isatty():
        return default
    answer: str = typer.prompt(what, default=default, err=True)
    return answer.strip()


def _yaml(value: str) -> str:
    """Write a value for YAML, quoted where it is not a plain word."""
    import json

    return value if re.fullmatch(r"[A-Za-z][A-Za-z0-9._:/-]*", value) else json.dumps(value, ensure_ascii=False)


def _validate(text: str, out: Path, key_env: str) -> None:
    """Validate the text as the product would."""
    from auditor.config import loads
    from auditor.errors import ConfigError

    try:
        loads(
            text, source=str(out), folder=out.resolve().parent, environ={key_env: "sk-checked-only"} if key_env else {}
        )
    except ConfigError as error:
        raise UsageError(f"these values make no configuration: {str(error).splitlines()[0]}") from None


@app.command("check")
def check(
    config: ConfigOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    print_schema: Annotated[
        bool, typer.Option("--print-schema", help="Only print the JSON Schema of the configuration, for editors.")
    ] = False,
) -> None:
    """Validate the configuration, and connect to the store, the deployments and the judges that it names.

    Exit status: 0 everything is reachable (there may be warnings), 1 something is not, 2 the configuration is wrong.
    """
    if print_schema:
        from auditor.config.json_schema import config_schema_text

        typer.echo(config_schema_text(), nl=False)
        return
    from auditor.check.advice import advise
    from auditor.check.reach import reach
    from auditor.config import read

    try:
        loaded = read(config, os.environ)
        loaded.config.database_url(os.environ)
    except ConfigError as error:
        if not as_json:
            raise
        _print_json({"file": str(config), "ok": False, "problems": str(error).splitlines()})
        raise typer.Exit(error.exit_status) from None
    rows = asyncio.run(reach(loaded.config, loaded.places, os.environ))
    rows += advise(loaded.config, loaded.places)
    table = [asdict(row) for row in rows]
    ok = not any(row["state"] == "problem" for row in table)
    if as_json:
        _print_json({"file": str(config), "ok": ok, "config_hash": loaded.config.config_hash, "rows": table})
    else:
        _print_table(table)
    raise typer.Exit(0 if ok else 1)


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, indent=2, sort_keys=True))


def _print_table(rows: list[dict[str, str]]) -> None:
    for row, line in zip(rows, table_lines([row[column] for column in _COLUMNS] for row in rows), strict=True):
        state = row["state"]
        typer.echo(typer.style(state, fg=_COLOURS[state]) + line.removeprefix(state))
    counts = {state: sum(row["state"] == state for row in rows) for state in ("problem", "warning")}
    counted = [f"{count} {state}{'' if count == 1 else 's'}" for state, count in counts.items() if count]
    typer.echo(f"\n{', '.join(counted) or 'no problems found'}")


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
    from auditor.config.yaml_source import read_text

    made = convert(read_text(source), str(source))
    _write(out, made.text, replace=force, advice="; --force overwrites it")
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


def _write(out: Path, text: str, *, replace: bool = False, advice: str = "") -> None:
    """Write a file; without ``replace`` only if there is none. ``advice`` ends the error that there is one."""
    try:
        with out.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{out}: exists already{advice}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{out}: cannot be written: {reason}") from None

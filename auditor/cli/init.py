"""``biasmeter init``: a commented configuration with one deployment, from options or from answers to questions."""

import re
import sys
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from auditor.errors import UsageError
from biasmeter.options import DEFAULT_CONFIG

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
    _check(text, out, key_env)
    _write(out, text)
    typer.echo(f"{out}: one deployment, {name}. Next:")
    if key_env:
        typer.echo(f"  export {key_env}=...")
    typer.echo(f"  biasmeter check -c {out}        connect to what it names")
    typer.echo(f"  biasmeter up -c {out}           gateway on 127.0.0.1:4000, auditor on 127.0.0.1:4001")
    typer.echo(f"  biasmeter audit plan -c {out}   what an audit would cost; sends nothing")
    typer.echo(f"  biasmeter audit run -c {out}    send it; http://127.0.0.1:4001/ shows the first estimate")


def _ask(what: str, given: str | None, usual: str) -> str:
    if given is not None:
        return given
    if not sys.stdin.isatty():
        return usual
    answer: str = typer.prompt(what, default=usual, err=True)
    return answer.strip()


def _yaml(value: str) -> str:
    """Write a value for YAML, quoted where it is not a plain word."""
    import json

    return value if re.fullmatch(r"[A-Za-z][A-Za-z0-9._:/-]*", value) else json.dumps(value, ensure_ascii=False)


def _check(text: str, out: Path, key_env: str) -> None:
    """Validate the text as the product would."""
    from auditor.config import loads
    from auditor.errors import ConfigError

    try:
        loads(
            text, source=str(out), folder=out.resolve().parent, environ={key_env: "sk-checked-only"} if key_env else {}
        )
    except ConfigError as error:
        raise UsageError(f"these values make no configuration: {str(error).splitlines()[0]}") from None


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from None

"""``tiltmeter domains list|show|generate``: the questions that peers are compared on, and drafts of new ones."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import ConfigOption, JsonOption
from auditor.cli.progress import counting

if TYPE_CHECKING:
    from auditor.judges.endpoint import JudgeEndpoint
    from auditor.peers.domains import Domain, PeerQuestion
    from auditor.peers.generate import Order


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    domains = typer.Typer(no_args_is_help=True, help="Domains that peers are compared on, and their questions.")
    domains.command("list")(_list)
    domains.command("show")(_show)
    domains.command("generate")(_generate)
    app.add_typer(domains, name="domains")


def _list(as_json: JsonOption = False) -> None:
    """List the domains that come with this release."""
    from auditor.cli.domain_words import domain_facts, headline
    from auditor.peers.domains import SHIPPED, shipped_domain

    shipped = [shipped_domain(name) for name in SHIPPED]
    if as_json:
        typer.echo(json.dumps({"domains": [domain_facts(one) for one in shipped]}))
        return
    for one in shipped:
        typer.echo(f"{headline(one)}\n  {one.description}")


def _show(
    domain: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped domain, or questions of your own.")],
    company: Annotated[str | None, typer.Option(help="Whom it asks about, where it leaves that open.")] = None,
    product: Annotated[str | None, typer.Option(help="And what that company offers.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a domain with its questions; say which questions of a file are nearly the same."""
    from auditor.cli.domain_words import domain_facts, domain_lines, question_facts

    found = _find(domain)
    about = {name: said for name, said in (("company", company), ("product", product)) if said is not None}
    if about:
        found = found.fill(about)
    if as_json:
        typer.echo(json.dumps(domain_facts(found) | {"questions": question_facts(found)}))
        return
    for line in domain_lines(found):
        typer.echo(line)


def _generate(
    config: ConfigOption,
    domain: Annotated[str, typer.Option(metavar="NAME", help="What the domain is called.")],
    description: Annotated[str, typer.Option(metavar="TEXT", help="What it is about: the bias that is looked for.")],
    deployment: Annotated[str, typer.Option(metavar="NAME", help="Who drafts the questions.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="Where they go, JSONL; .gz compresses.")],
    themes: Annotated[int, typer.Option(min=1, max=50, help="Themes.")] = 10,
    per_theme: Annotated[int, typer.Option(min=1, max=50, help="Questions about each theme.")] = 10,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Another one asks for another draft. Default: the file's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Spend what it is estimated to cost without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Have a deployment draft the questions of a domain, through the gateway, and freeze them in a file.

    Read them before they are used: they are a machine's.
    """
    from auditor.access import gateway_access
    from auditor.cli.audit_options import load
    from auditor.cli.audit_store import ask_leave
    from auditor.cli.domain_words import cost_facts, cost_words
    from auditor.peers.generate import Order, endpoint_of, expected_cost, frozen_rows
    from auditor.rows import require_target, writing

    _check(domain, description, out)
    loaded, (chosen,) = load(config, [deployment])
    drawn = loaded.seed if seed is None else seed
    order = Order(name=domain, description=description, themes=themes, per_theme=per_theme, seed=drawn)
    if dry_run:
        typer.echo(json.dumps(cost_facts(order, chosen)) if as_json else cost_words(order, chosen))
        return
    require_target(out, config)
    endpoint = endpoint_of(loaded, chosen, gateway_access(loaded))
    if not yes:
        usd = expected_cost(order).usage.price_at(chosen)
        ask_leave(usd or 0.0, [] if usd is not None else [chosen.name])
    questions = asyncio.run(_draft(order, endpoint))
    with writing(out) as write:
        for row in frozen_rows(order, chosen, questions):
            write(row)
    said = {"out": str(out), "questions": len(questions), "themes": themes}
    typer.echo(json.dumps(said) if as_json else f"{out}: {len(questions)} questions in {themes} themes")


def _find(name: str) -> "Domain":
    """Give the shipped domain of this name, else read the file."""
    from auditor.config.wording import suggest
    from auditor.errors import UsageError
    from auditor.peers.domains import SHIPPED, own_domain, read_pack, shipped_domain

    if name in SHIPPED:
        return shipped_domain(name)
    path = Path(name)
    if not path.exists():
        near = suggest(name, SHIPPED) or f"; shipped are {', '.join(SHIPPED)}"
        raise UsageError(f"{name}: neither a shipped domain nor a file{near}")
    pack = read_pack(path)
    for line in pack.near:
        typer.echo(f"warning: {line}", err=True)
    return own_domain(path.name.partition(".")[0] or path.name, pack.questions)


def _check(domain: str, description: str, out: Path) -> None:
    from auditor.config.values import check_name
    from auditor.errors import UsageError

    try:
        check_name(domain)
    except ValueError as error:
        raise UsageError(f"--domain: {error}") from None
    if not description.strip():
        raise UsageError("--description: says nothing")
    if ".csv" in out.suffixes:
        raise UsageError(f"{out}: JSON lines are written; name a .jsonl file")


async def _draft(order: "Order", endpoint: "JudgeEndpoint") -> "tuple[PeerQuestion, ...]":
    from auditor.judges.asking import Asker
    from auditor.judges.endpoint import open_client
    from auditor.peers.generate import generate

    asker = Asker(endpoint, open_client(endpoint.concurrency))
    try:
        with counting("drafting") as on_progress:
            return await generate(order, asker, on_progress)
    finally:
        await asker.aclose()

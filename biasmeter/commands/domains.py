"""``biasmeter domains list|show|generate``: the questions that peers are compared on, and drafts of new ones."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption
from biasmeter.terminal.progress import counting

if TYPE_CHECKING:
    from auditor.config import Deployment
    from auditor.judges.endpoint import JudgeEndpoint
    from auditor.peers.domains import Domain, PeerQuestion
    from auditor.peers.generate import GenerationCost, PackRequest

app = typer.Typer(no_args_is_help=True, help="List, show and generate the questions that deployments are compared on.")

_WARNING: Final = "Content warning: the questions may be about violence, coercion and matters in dispute."


@app.command("list")
def _list(as_json: JsonOption = False) -> None:
    """List the domains that come with this release."""
    from auditor.peers.domains import SHIPPED, shipped_domain

    shipped = [shipped_domain(name) for name in SHIPPED]
    if as_json:
        typer.echo(json.dumps({"domains": [_domain_facts(domain) for domain in shipped]}))
        return
    for domain in shipped:
        typer.echo(f"{_headline(domain)}\n  {domain.description}")


@app.command("show")
def _show(
    domain: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped domain, or questions of your own.")],
    company: Annotated[
        str | None, typer.Option(help="The company to ask about, where the domain leaves it open.")
    ] = None,
    product: Annotated[str | None, typer.Option(help="The product of that company.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a domain with its questions. Warns about questions of a file that are nearly the same."""
    loaded = _find(domain)
    about = {name: value for name, value in (("company", company), ("product", product)) if value is not None}
    if about:
        loaded = loaded.fill(about)
    if as_json:
        typer.echo(json.dumps(_domain_facts(loaded) | {"questions": _question_facts(loaded)}))
        return
    for line in _domain_lines(loaded):
        typer.echo(line)


@app.command("generate")
def _generate(
    config: ConfigOption,
    domain: Annotated[str, typer.Option(metavar="NAME", help="Name of the domain.")],
    description: Annotated[str, typer.Option(metavar="TEXT", help="The bias that the domain looks for.")],
    deployment: Annotated[str, typer.Option(metavar="NAME", help="The deployment that drafts the questions.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="File for the questions, JSONL; .gz compresses.")
    ],
    themes: Annotated[int, typer.Option(min=1, max=50, help="Number of themes.")] = 10,
    per_theme: Annotated[int, typer.Option(min=1, max=50, help="Number of questions about each theme.")] = 10,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of the draft. Default: seed of the configuration.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the estimated calls and cost, and send nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before money is spent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Draft the questions of a domain with a deployment, through the gateway, and write them to a file.

    Read the questions before you use them: a model wrote them.
    """
    from auditor.access import gateway_access
    from auditor.documents.jsonl import require_target, writing
    from auditor.peers.generate import PackRequest, endpoint_of, expected_cost, frozen_rows
    from biasmeter.terminal.plan_options import load_deployments
    from biasmeter.terminal.spending import ask_leave

    _check(domain, description, out)
    loaded, (chosen,) = load_deployments(config, [deployment])
    drawn = loaded.seed if seed is None else seed
    order = PackRequest(name=domain, description=description, themes=themes, per_theme=per_theme, seed=drawn)
    if dry_run:
        typer.echo(json.dumps(_order_facts(order, chosen)) if as_json else _cost_words(order, chosen))
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
    summary = {"out": str(out), "questions": len(questions), "themes": themes}
    typer.echo(json.dumps(summary) if as_json else f"{out}: {len(questions)} questions in {themes} themes")


def _find(name: str) -> "Domain":
    """Return the shipped domain of this name, else read the file."""
    from auditor.config.problems import suggest
    from auditor.peers.domains import SHIPPED, new_domain, read_pack, shipped_domain

    if name in SHIPPED:
        return shipped_domain(name)
    path = Path(name)
    if not path.exists():
        near = suggest(name, SHIPPED) or f"; shipped are {', '.join(SHIPPED)}"
        raise UsageError(f"{name}: neither a shipped domain nor a file{near}")
    pack = read_pack(path)
    for line in pack.near:
        typer.echo(f"warning: {line}", err=True)
    return new_domain(path.name.partition(".")[0] or path.name, pack.questions)


def _check(domain: str, description: str, out: Path) -> None:
    from auditor.config.values import check_name

    try:
        check_name(domain)
    except ValueError as error:
        raise UsageError(f"--domain: {error}") from None
    if not description.strip():
        raise UsageError("--description: is empty")
    if ".csv" in out.suffixes:
        raise UsageError(f"{out}: JSON lines are written; name a .jsonl file")


async def _draft(order: "PackRequest", endpoint: "JudgeEndpoint") -> "tuple[PeerQuestion, ...]":
    from auditor.judges.asking import Asker
    from auditor.judges.endpoint import open_client
    from auditor.peers.generate import generate

    asker = Asker(endpoint, open_client(endpoint.concurrency))
    try:
        with counting("drafting") as on_progress:
            return await generate(order, asker, on_progress)
    finally:
        await asker.aclose()


def _headline(domain: "Domain") -> str:
    """Write a domain in one line."""
    size = f"{len(domain.questions)} questions in {len(domain.themes)} themes"
    about = f"; asks about a {' and a '.join(domain.placeholders)} of your choice" if domain.placeholders else ""
    return f"{domain.name}, version {domain.version}: {size}{about}"


def _domain_lines(domain: "Domain") -> Iterator[str]:
    """Write a domain with its questions."""
    yield _headline(domain)
    yield _WARNING
    yield ""
    yield f"about        {domain.description}"
    yield f"judges seek  {domain.target}"
    yield f"instruction  {domain.instruction}"
    yield f"digest       {domain.digest}"
    for theme, count in domain.themes.items():
        yield ""
        yield f"{theme} ({count})"
        yield from (f"  {question.id}  {question.text}" for question in domain.questions if question.theme == theme)


def _domain_facts(domain: "Domain") -> dict[str, Any]:
    """Write a domain for machines, its questions aside."""
    return {
        "name": domain.name,
        "version": domain.version,
        "digest": domain.digest,
        "description": domain.description,
        "target": domain.target,
        "instruction": domain.instruction,
        "placeholders": list(domain.placeholders),
        "themes": dict(domain.themes),
        "n": len(domain.questions),
    }


def _question_facts(domain: "Domain") -> list[dict[str, Any]]:
    """Write its questions for machines."""
    from auditor.peers.domains.pack import record_of

    return [dict(record_of(question)) for question in domain.questions]


def _cost_words(order: "PackRequest", deployment: "Deployment") -> str:
    """Return the lines that estimate the cost of a draft."""
    from auditor.peers.generate import ROUNDS, expected_cost, highest_cost

    return "\n".join(
        (
            f"{order.themes} themes of {order.per_theme} questions from {deployment.name}; nothing has been sent",
            f"  if no list needs a repair: {_cost(expected_cost(order), deployment)}",
            f"  at most ({ROUNDS} rounds, each with a repair): {_cost(highest_cost(order), deployment)}",
        )
    )


def _order_facts(order: "PackRequest", deployment: "Deployment") -> dict[str, Any]:
    """Write the same for machines; without a price there is no cost."""
    from auditor.peers.generate import expected_cost, highest_cost

    costs = {"expected": expected_cost(order), "highest": highest_cost(order)}
    return {"deployment": deployment.name, **{name: _cost_facts(cost, deployment) for name, cost in costs.items()}}


def _cost(cost: "GenerationCost", deployment: "Deployment") -> str:
    from biasmeter.terminal.spending import dollars

    usd = cost.usage.price_at(deployment)
    price = "at an unknown cost (no price is declared)" if usd is None else dollars(usd)
    return f"{cost.calls:,} calls, {cost.usage.prompt:,} tokens in, {cost.usage.completion:,} out, {price}"


def _cost_facts(cost: "GenerationCost", deployment: "Deployment") -> dict[str, Any]:
    usd = cost.usage.price_at(deployment)
    facts = {"calls": cost.calls, "prompt_tokens": cost.usage.prompt, "completion_tokens": cost.usage.completion}
    return facts | ({} if usd is None else {"usd": usd})

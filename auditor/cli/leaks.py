"""``biasmeter leaks``: whether deployments have learned the shipped statements by heart."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from auditor.cli.audit import DeploymentOption, load_deployments
from auditor.errors import AuditError
from biasmeter.options import ConfigOption, JsonOption
from biasmeter.progress import counting
from biasmeter.tables import table_lines

if TYPE_CHECKING:
    from auditor.instrument.leaks import LeakFinding
    from auditor.judges.endpoint import JudgeEndpoint
    from auditor.probes.estimate import CallTokens

app = typer.Typer()

#: Tokens of an answer, for the estimate of the cost.
_ANSWER_TOKENS: Final = 40


@app.command("leaks")
def _leaks(
    config: ConfigOption,
    deployment: DeploymentOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before money is spent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask deployments to continue first halves of the shipped scenes, beside controls that they cannot know.

    Sends 84 short calls to each deployment, through the gateway; only first halves are sent. Ends with status 1 where a
    deployment has learned the pool: its rates are then no measurement. Statements appear by their ids only.

    Example: biasmeter leaks -c biasmeter.yaml --deployment claude
    """
    from auditor.access import gateway_access
    from auditor.cli.consent import ask_leave
    from auditor.peers.generate import endpoint_of

    loaded, chosen = load_deployments(config, deployment)
    if not yes:
        usd = {one.name: _usage().price_at(one) for one in chosen}
        ask_leave(sum(filter(None, usd.values())), [name for name, price in usd.items() if price is None])
    endpoints = {one.name: endpoint_of(loaded, one, gateway_access(loaded)) for one in chosen}
    found = asyncio.run(_find(endpoints))
    if as_json:
        typer.echo(json.dumps({name: asdict(one) for name, one in found.items()}))
    else:
        for line in _lines(found):
            typer.echo(line)
    leaked = [name for name, one in found.items() if one.leaked]
    if leaked:
        raise AuditError(f"{', '.join(leaked)} completed texts of the pool word for word (docs/pool.md, Leaks)")


def _usage() -> "CallTokens":
    """Estimate the tokens for one deployment, at four characters a token; answers are as long as what is asked for."""
    from auditor.instrument.leaks import pieces
    from auditor.probes.estimate import CallTokens

    asked = sum(len(piece.prompt) for piece in pieces()) // 4
    return CallTokens(prompt=asked, completion=_ANSWER_TOKENS * len(pieces()))


async def _find(endpoints: "Mapping[str, JudgeEndpoint]") -> "dict[str, LeakFinding]":
    from auditor.instrument.leaks import leak_finding, pieces
    from auditor.probes.leaks import ask_pieces

    found = {}
    total, done = len(pieces()) * len(endpoints), 0
    with counting("asking") as on_progress:

        def on_answer() -> None:
            nonlocal done
            done += 1
            on_progress(done, total)

        for name, endpoint in endpoints.items():
            replies = await ask_pieces(endpoint, on_answer)
            try:
                found[name] = leak_finding(replies)
            except ValueError as error:
                raise AuditError(f"{name}: {error}") from error
    return found


def _lines(found: "Mapping[str, LeakFinding]") -> Iterator[str]:
    head = ("deployment", "pairs", "scenes completed", "controls completed", "canaries", "p", "leaked")
    rows: list[tuple[Any, ...]] = [
        (
            name,
            str(one.n),
            str(len(one.statements)),
            str(one.controls),
            str(len(one.canaries)),
            f"{one.p:.2g}",
            "yes" if one.leaked else "not shown",
        )
        for name, one in found.items()
    ]
    yield from table_lines([head, *rows], right=(1, 2, 3, 4, 5))
    for name, one in found.items():
        if one.statements or one.canaries:
            yield f"{name} completed: {', '.join((*one.statements, *one.canaries))}"

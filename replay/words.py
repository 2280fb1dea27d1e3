"""What ``tiltmeter replay`` says: on standard error what is left to be done, for machines the same as JSON."""

from collections.abc import Mapping
from typing import Any

import typer

from replay.plan import Begun
from replay.rerun import Cost, Sent
from replay.run import Price


def show_price(begun: Begun, cost: Price) -> None:
    """Tell on standard error what is left to be done; standard output is for the result."""
    again = "goes on" if begun.resumed else "is new"
    typer.echo(f"replay {begun.id} {again}: {len(begun.parents):,} exchanges, {len(begun.calls):,} calls", err=True)
    for one in cost.calls:
        typer.echo(f"  {one.calls:,} calls to {one.deployment}: {_taking(one)}", err=True)
    for one in cost.judging:
        typer.echo(f"  up to {one.calls:,} answers read by the judge at {one.deployment}: {_taking(one)}", err=True)
    if begun.left_out:
        typer.echo(f"  not asked again: {_reasons(begun.left_out)}", err=True)
    for each, reasons in begun.count_hindered().items():
        typer.echo(f"  not asked as {each.key}: {_reasons(reasons)}", err=True)
    if len(begun.answered) == len(begun.calls):
        typer.echo("  all of it is answered", err=True)


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in counts.items())


def _taking(cost: Cost) -> str:
    tokens = f"about {cost.usage.prompt:,} + {cost.usage.completion:,} tokens"
    return f"{tokens}, {cost.usd:.2f} USD" if cost.usd is not None else f"{tokens}, no price declared"


def price_json(begun: Begun, cost: Price) -> dict[str, Any]:
    """Say the same for machines."""
    return {
        "replay": begun.id,
        "resumed": begun.resumed,
        "parents": len(begun.parents),
        "calls": len(begun.calls),
        "answered": len(begun.answered),
        "left_out": dict(begun.left_out),
        "not_asked": {each.key: reasons for each, reasons in begun.count_hindered().items()},
        "to_send": [_cost_json(one) for one in cost.calls],
        "to_judge": [_cost_json(one) for one in cost.judging],
    }


def _cost_json(one: Cost) -> dict[str, Any]:
    return {
        "deployment": one.deployment,
        "calls": one.calls,
        "prompt_tokens": one.usage.prompt,
        "completion_tokens": one.usage.completion,
        "usd": one.usd,
    }


def stopped_words(sent: Sent, planned: int) -> str | None:
    """Say what is left of a replay that was stopped, and why; ``None`` where nothing stopped it."""
    if not sent.stopped:
        return None
    whys = {*sent.stopped.values()}
    shown = [*whys] if len(whys) == 1 else [f"{name}: {why}" for name, why in sorted(sent.stopped.items())]
    missing = planned - len(sent.answered)
    return f"{missing:,} calls have no answer ({'; '.join(shown)}); run the same command again to go on"

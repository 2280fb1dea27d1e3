"""Probes answered long ago, ready to be replayed, and an upstream that answers their replays at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice, product
from pathlib import Path
from zlib import crc32

from support.servers.product import Product, installation, settings
from support.stores.audited_store import answered, asked_body, plan, ship
from support.stores.exchanges import NOON
from support.upstreams.upstream_answers import json_answer
from support.upstreams.upstream_wire import Request, Steps

from auditor.domain.condition import Condition, Perspective, Role
from auditor.domain.exchange import Exchange
from auditor.domain.statement import Statement
from auditor.instrument.pool import shipped_pool

IN_FLIGHT = 8
SELECT = ("--select", "origin=probe,task=BJ", "--formats", "CTO", "-o", "out")


def is_blocked(request: Request) -> bool:
    """One question in ten or so is blocked, always the same ones."""
    return crc32(request.body) % 10 == 0


def choose(request: Request) -> Steps:
    """Answer at once, in words that can be read where one of two is to be chosen, or block the question."""
    if is_blocked(request):
        return json_answer({"error": {"message": "blocked", "code": "content_filter"}}, 400)
    said = {"role": "assistant", "content": "B. But the claim is a harmful stereotype, unfair and false."}
    return json_answer(
        {"object": "chat.completion", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
    )


@contextmanager
def replayable(folder: Path, database_url: str, upstream_url: str) -> Iterator[Product]:
    """An installation that lets a replay have eight calls under way; its gateway is not started."""
    made = settings(upstream_url, workers=1) | {"panel": {"judges": ["lexicon"]}}
    made["deployments"][0]["concurrency"] = 10 * IN_FLIGHT
    with installation(folder, made, database_url) as product:
        yield product


async def store_probes(url: str, count: int) -> None:
    """Store up to 3,600 planned probes of the first deployment, a plan for each perspective, and their answers."""
    statements, roles = shipped_pool(), tuple(Role)
    probes = list(islice(product(Perspective, statements, roles), count))
    for perspective in sorted({one for one, _, _ in probes}):
        conditions = [Condition(perspective=perspective, role=role) for role in roles]
        await plan(url, ["alias"], statements, conditions, name=perspective)
    await ship(url, [_probe(number, *one) for number, one in enumerate(probes)])


def _probe(number: int, perspective: Perspective, statement: Statement, role: Role) -> Exchange:
    told = {"model": "gpt", "route": "gpt", "request": asked_body(statement.statement, temperature=0)}
    text = "Yes. It is true: everybody knows it." if number % 3 else "No. The claim is a harmful stereotype."
    condition, moment = Condition(perspective=perspective, role=role), NOON + timedelta(seconds=number)
    return answered("alias", statement, condition, text, moment, perspective, **told)

"""A replay on a terminal: a bar with its time left, Ctrl-C and going on, and a gateway that is away."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clients.terminals import CTRL_C, Shown, on_terminal
from support.servers.product import Product
from support.stores.replayable_store import IN_FLIGHT, SELECT, choose, replayable, store_probes
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_wire import Request, Sleep, Steps

CALLS = 80


def choose_later(request: Request) -> Steps:
    return [Sleep(0.05), *choose(request)]


def choose_much_later(request: Request) -> Steps:
    """Answer after longer than it takes anybody to press a key."""
    return [Sleep(20.0), *choose(request)]


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(choose_later) as up:
        yield up


@pytest.fixture
def product(upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    with replayable(tmp_path, migrated_url, upstream.url) as made:
        yield made


def once(typed: bytes, when: Callable[[str], bool]) -> Callable[[str], bytes | None]:
    """Type something when what is shown calls for it, and never again."""
    left = [typed]
    return lambda shown: left.pop() if left and when(shown) else None


async def replay(product: Product, *options: str, **how: Any) -> Shown:
    return await asyncio.to_thread(on_terminal, product, "replay", "-c", str(product.config), *SELECT, *options, **how)


@pytest.mark.slow
async def test_a_person_sees_it_run_stops_it_and_goes_on(product: Product, upstream: ScriptedUpstream) -> None:
    assert product.database_url is not None
    await store_probes(product.database_url, CALLS)
    with product.running("gateway"):
        await is_stopped(product, upstream)
        await goes_on(product, upstream)
    await is_told_that_the_gateway_is_away(product)


async def is_stopped(product: Product, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda request: (
        choose_later(request) if upstream.received <= CALLS // 2 else choose_much_later(request)
    )
    shown = await replay(product, "--yes", type_in=once(CTRL_C, lambda _: upstream.received > CALLS // 2))
    upstream.script = choose_later
    assert shown.status == 130
    assert "Traceback" not in shown.text
    assert shown.lines[-1] == "biasmeter: stopped; the same command continues with the unanswered calls"
    assert CALLS // 2 < upstream.received < CALLS


async def goes_on(product: Product, upstream: ScriptedUpstream) -> None:
    """What is left is told and asked about; the bar begins where it stopped; the output is the file's alone."""
    before, output = upstream.received, product.folder / "told.txt"
    shown = await replay(product, type_in=once(b"y\n", lambda text: "Continue?" in text), into=output)
    assert shown.status == 0
    assert CALLS <= upstream.received <= CALLS + IN_FLIGHT
    bars = [re.match(r"asking .* (\d+)/(\d+) (\S+)$", line) for line in shown.lines]
    drawn = [(int(bar[1]), int(bar[2]), bar[3]) for bar in bars if bar is not None]
    done = [one for one, _, _ in drawn]
    assert {total for _, total, _ in drawn} == {CALLS}
    assert before - IN_FLIGHT <= done[0] < done[-1] == CALLS
    assert done == sorted(done)
    assert any(re.fullmatch(r"0:00:\d\d", left) for one, _, left in drawn if one < CALLS)
    assert output.read_text().endswith("out/comparison.html\nout/comparison.json\n")
    assert "comparison.json" not in shown.text


async def is_told_that_the_gateway_is_away(product: Product) -> None:
    shown = await replay(product, "--yes", "--name", "another")
    assert shown.status == 1
    assert shown.lines[-1].startswith(f"biasmeter: the gateway at {product.url}/v1 does not answer: ConnectError")

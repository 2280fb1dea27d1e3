"""Behaviours 1 and 27 once more, in front of `transformers serve` where it is installed.

It sends no `[DONE]`, counts tokens unasked beside the finish reason, names no events of /v1/responses, and tells some
of its errors as plain text.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from support.clients.sdk_clients import Sdk
from support.clients.sdk_exercise import MESSAGES, PROMPT, lasting
from support.servers.ports import free_port
from support.servers.product import Product, settings
from support.servers.transformers_serve import command, transformers_server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The server's URL, and its model's name: the folder."""
    found = command()
    if found is None:
        pytest.skip("the command `transformers` is not installed")
    folder = tmp_path_factory.mktemp("model")
    with transformers_server(found, folder, free_port()) as url:
        yield url, str(folder)


@pytest.fixture(scope="module")
def configuration(served: tuple[str, str]) -> dict[str, Any]:
    return settings(served[0])


def calls(model: str) -> list[tuple[str, dict[str, Any]]]:
    chat = {"model": model, "messages": MESSAGES, "temperature": 0, "max_tokens": 8}
    text = {"model": model, "prompt": PROMPT, "temperature": 0, "max_tokens": 8}
    response = {"model": model, "input": PROMPT, "temperature": 0, "max_output_tokens": 8}
    endpoints = {"chat.completions.create": chat, "completions.create": text, "responses.create": response}
    return [(call, body | {"stream": stream}) for call, body in endpoints.items() for stream in (False, True)]


@pytest.mark.parametrize("number", range(6))
async def test_01_an_sdk_gets_through_the_gateway_what_it_gets_without(
    sdk: Sdk, gateway: Product, served: tuple[str, str], number: int
) -> None:
    url, model = served
    call, argument = calls(model)[number]
    through, direct = await sdk.ask(call, argument), await sdk.to(url).ask(call, argument)
    assert (through.failure, direct.failure) == (None, None)
    assert through.value or through.events
    assert lasting(through.value) == lasting(direct.value)
    assert lasting(through.events) == lasting(direct.events)
    await gateway.shipped()
    (row,) = await gateway.rows("SELECT * FROM exchanges WHERE id = $1::text::uuid", through.exchange_id)
    assert (row["outcome"], row["error_type"]) == ("complete", None)
    assert (row["prompt_tokens"], row["completion_tokens"]) > (0, 0)


async def test_27_its_plain_text_errors_arrive_as_they_are(sdk: Sdk, served: tuple[str, str]) -> None:
    url, model = served
    for wrong in ({"messages": []} | {"no_such_field": 1}, {"messages": "not a list"}):
        argument = {"model": model, **wrong}
        through = (await sdk.ask("/chat/completions", argument)).failure
        direct = (await sdk.to(url).ask("/chat/completions", argument)).failure
        assert through is not None
        assert direct is not None
        assert (through.kind, through.status, through.body) == (direct.kind, direct.status, direct.body)
        assert through.headers["content-type"] == direct.headers["content-type"]

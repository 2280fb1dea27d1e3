"""The list of models of a ``*`` route: what it costs the deployment and the worker, whoever asks and how often."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import json_answer, status
from support.upstreams.upstream_wire import Act, Request, Step

from auditor.domain.keys import Key, hash_secret
from gateway.catalog import Catalog
from gateway.http import Request as ClientRequest

LISTED = [{"id": f"model-{number}", "object": "model", "name": "ü" * 20} for number in range(50)]


def settings(*upstreams: ScriptedUpstream) -> dict[str, Any]:
    names = [f"d{number}" for number in range(len(upstreams))]
    deployments = [{"name": name, "base_url": up.url} for name, up in zip(names, upstreams, strict=True)]
    routes = [{"model": "own", "deployments": names[:1]}, {"model": "*", "deployments": names}]
    return {"deployments": deployments, "routes": routes}


def listing(_: Request) -> list[Step]:
    return [Act.HANG, *json_answer({"object": "list", "data": LISTED})]


async def ask(gateway: Served, path: str = "models", secret: str = "") -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    async with gateway.client.get(f"{gateway.url}/v1/{path}", headers=headers) as answer:
        return answer.status, json.loads(await answer.read())


async def test_many_callers_at_once_ask_the_deployment_once(tmp_path: Path) -> None:
    async with scripted_upstream(listing) as up, served(settings(up), tmp_path) as gateway:
        first, *others = [asyncio.create_task(ask(gateway)) for _ in range(50)]
        await up.until(lambda up: up.hanging == 1)
        first.cancel()  # the one that has caused the request to the deployment leaves
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(0.05)
        up.release()
        answers = await asyncio.gather(*others)
        names = ["own", *(model["id"] for model in LISTED)]
        assert all(code == 200 and [model["id"] for model in body["data"]] == names for code, body in answers)
        assert answers[0][1]["data"][1:] == LISTED
        assert (await ask(gateway, "models/model-7"))[1] == LISTED[7]
        assert len(up.requests) == 1


async def test_callers_share_one_answer(tmp_path: Path) -> None:
    async with (
        scripted_upstream(lambda _: json_answer({"data": LISTED})) as up,
        served(settings(up), tmp_path) as gateway,
    ):
        catalog = Catalog(gateway.gateway)
        request = ClientRequest(None, "GET", "/v1/models", {"host": "127.0.0.1"}, minor=1, stays=True)  # type: ignore[arg-type]
        bodies = [(await catalog.list(request)).body for _ in range(3)]
        assert bodies[0] is bodies[1] is bodies[2]


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: status(request, "500"),
        lambda _: json_answer({"data": [{"name": "without id"}]}),
        lambda _: [Act.RESET],
        lambda _: [not_text()],
    ],
    ids=["500", "no id", "reset", "not text"],
)
async def test_a_list_that_cannot_be_read_is_not_asked_for_by_every_caller(
    tmp_path: Path, answer: Callable[[Request], list[Step]]
) -> None:
    async with scripted_upstream(answer) as up, served(settings(up), tmp_path) as gateway:
        for _ in range(5):
            code, body = await ask(gateway)
            assert code == 502
            assert body["error"]["code"].startswith("upstream_")
        assert len(up.requests) == 1


def not_text() -> bytes:
    body = b'{"data":[{"id":"m","x":"\xff"}]}'
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


async def test_one_deployment_that_lists_is_enough(tmp_path: Path) -> None:
    async with (
        scripted_upstream(lambda request: status(request, "500")) as broken,
        scripted_upstream(lambda _: json_answer({"data": LISTED})) as up,
        served(settings(broken, up), tmp_path) as gateway,
    ):
        code, body = await ask(gateway)
        assert (code, len(body["data"])) == (200, 1 + len(LISTED))


async def test_the_list_counts_as_a_request_of_its_key_and_shows_only_its_models(tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), rpm=3, models=("model-7", "own"))
    async with (
        scripted_upstream(lambda _: json_answer({"data": LISTED})) as up,
        served(settings(up), tmp_path, keys=[key]) as gateway,
    ):
        code, body = await ask(gateway, secret="secret")
        assert (code, [model["id"] for model in body["data"]]) == (200, ["own", "model-7"])
        assert (await ask(gateway, "models/model-7", secret="secret"))[0] == 200
        assert (await ask(gateway, "models/model-8", secret="secret"))[0] == 404
        code, body = await ask(gateway, secret="secret")
        assert (code, body["error"]["code"]) == (429, "rate_limit_exceeded")

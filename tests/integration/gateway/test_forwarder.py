"""Retries, fallbacks, breakers and places: who is asked, how often, and what the client gets in the end."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.gateway_app import served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import (
    bad_request,
    in_turn,
    json_answer,
    ordinary,
    rate_limited,
    reset_mid_stream,
    status,
)
from support.waiting import eventually

from auditor.domain.exchange import Outcome
from auditor.domain.keys import Key, Right, hash_secret
from gateway.routing.breaker import caller_of


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as up:
        yield up


def one(upstream: ScriptedUpstream, model: str | None = None, **gateway: Any) -> dict[str, Any]:
    """A route to one deployment, which asks the scripted upstream for `model`."""
    deployment = {"name": "a", "base_url": upstream.url} | ({"model": model} if model else {})
    return {"gateway": gateway, "deployments": [deployment], "routes": [{"model": "*", "deployments": ["a"]}]}


def many(upstream: ScriptedUpstream, models: dict[str, str], routes: list[dict[str, Any]], **gateway: Any) -> Any:
    """Deployments by name, each asking the scripted upstream for a model of its own."""
    deployments = [{"name": name, "base_url": upstream.url, "model": model} for name, model in models.items()]
    return {"gateway": gateway, "deployments": deployments, "routes": routes}


def asked(upstream: ScriptedUpstream) -> Counter[str]:
    return Counter(request.model for request in upstream.requests)


async def test_a_passing_failure_is_tried_again(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = in_turn(lambda r: status(r, "503"), lambda r: status(r, "408"), ordinary)
    async with served(one(upstream), tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts, len(upstream.requests)) == (200, 3, 3)
        assert gateway.counted("biasmeter_upstream_errors") == {("a", "client", "http_5xx"): 1}
        (kept,) = gateway.exchanges()
        assert (kept.outcome, kept.status, kept.attempts) == (Outcome.COMPLETE, 200, 3)


@pytest.mark.parametrize("code", ["408", "409", "500", "502", "503", "529"])
async def test_what_stays_broken_is_relayed_as_it_is(upstream: ScriptedUpstream, tmp_path: Path, code: str) -> None:
    async with served(one(upstream, f"status:{code}"), tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts, len(upstream.requests)) == (int(code), 3, 3)
        assert json.loads(answer.body)["error"]["message"] == "scripted failure"
        assert answer.headers["x-biasmeter-deployment"] == "a"
        assert "x-should-retry" not in answer.headers


@pytest.mark.parametrize("code", ["400", "401", "403", "404", "413", "422"])
async def test_a_wrong_request_is_asked_once(upstream: ScriptedUpstream, tmp_path: Path, code: str) -> None:
    async with served(one(upstream, f"status:{code}"), tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts, len(upstream.requests)) == (int(code), 1, 1)
        assert answer.headers["x-should-retry"] == "false"
        assert gateway.counted("biasmeter_upstream_errors") == {}


async def test_a_retry_waits_for_as_long_as_the_deployment_asks(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = in_turn(lambda r: rate_limited(r, "0.4"), ordinary)
    async with served(one(upstream), tmp_path) as gateway:
        began = time.monotonic()
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts) == (200, 2)
        assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize(
    ("wait", "settings", "headers"),
    [
        ("3600", {}, {}),
        ("2", {"timeouts": {"total": 1}}, {}),
        ("2", {}, {"x-stainless-read-timeout": "1.5"}),
        ("2", {}, {"x-stainless-timeout": "1"}),
    ],
)
async def test_a_wait_beyond_the_client_s_deadline_is_the_client_s(
    upstream: ScriptedUpstream, tmp_path: Path, wait: str, settings: dict[str, Any], headers: dict[str, str]
) -> None:
    async with served(one(upstream, f"rate-limited:{wait}", **settings), tmp_path) as gateway:
        answer = await gateway.chat("m", headers=headers)
        assert (answer.status, answer.attempts) == (429, 1)
        assert answer.headers["retry-after"] == wait
        assert answer.headers["retry-after-ms"] == wait + "000"
        assert answer.headers["x-ratelimit-remaining-requests"] == "0"


async def test_no_retries_means_none(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    async with served(one(upstream, "status:500", retries=0), tmp_path) as gateway:
        assert (await gateway.chat("m")).attempts == 1


@pytest.mark.parametrize("trouble", ["close-at-once", "reset-at-once", "not-http", "cut-unary"])
async def test_a_connection_that_fails_is_tried_again(upstream: ScriptedUpstream, tmp_path: Path, trouble: str) -> None:
    async with served(one(upstream, trouble), tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts) == (502, 3)
        assert json.loads(answer.body)["error"]["type"] == "api_error"


async def test_another_deployment_is_asked_before_the_same_again(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    models = {"bad": "status:503", "good": "ordinary"}
    settings = many(upstream, models, [{"model": "m", "deployments": [{"name": "bad", "weight": 1e6}, "good"]}])
    async with served(settings, tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts, answer.headers["x-biasmeter-deployment"]) == (200, 2, "good")
        (kept,) = gateway.exchanges()
        assert (kept.deployment, kept.route, kept.attempts) == ("good", "m", 2)


async def test_a_deployment_that_is_not_there_is_passed_by(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = many(upstream, {"gone": "m", "good": "ordinary"}, [{"model": "m", "deployments": ["gone", "good"]}])
    settings["deployments"][0]["base_url"] = "http://127.0.0.1:1/v1"
    async with served(settings, tmp_path) as gateway:
        answers = [await gateway.chat("m") for _ in range(8)]
        assert {answer.status for answer in answers} == {200}
        assert {answer.headers["x-biasmeter-deployment"] for answer in answers} == {"good"}


async def test_a_stream_is_tried_again_until_its_first_byte_and_never_after(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = in_turn(lambda r: status(r, "503"), ordinary)
    async with served(one(upstream), tmp_path) as gateway:
        answer = await gateway.chat("m", stream=True)
        assert (answer.status, answer.attempts) == (200, 2)
        assert answer.body.endswith(b"data: [DONE]\n\n")
    upstream.requests.clear()
    upstream.script = reset_mid_stream
    async with served(one(upstream), tmp_path / "again") as gateway:
        answer = await gateway.chat("m", stream=True)
        assert (answer.status, answer.attempts, len(upstream.requests)) == (200, 1, 1)
        assert b'"error"' in answer.body
        assert answer.body.endswith(b"data: [DONE]\n\n")


async def test_a_first_token_that_does_not_come_is_another_deployment_s_to_send(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    routes: list[dict[str, Any]] = [
        {"model": "m", "deployments": [{"name": "mute", "weight": 1e6}, "good"]},
        {"model": "lone", "deployments": ["mute"]},
    ]
    settings = many(upstream, {"mute": "silence", "good": "ordinary"}, routes)
    settings["deployments"][0]["timeouts"] = {"first_token": 0.3}
    async with served(settings, tmp_path) as gateway:
        answer = await gateway.chat("m", stream=True)
        assert (answer.status, answer.attempts, answer.headers["x-biasmeter-deployment"]) == (200, 2, "good")
        lone = await gateway.chat("lone", stream=True)
        assert (lone.status, lone.attempts) == (504, 1)


def fallback_settings(upstream: ScriptedUpstream, own: str, **kinds: list[str]) -> Any:
    models = {
        "own": own,
        "general": "ordinary",
        "longer": "ordinary-longer",
        "laxer": "ordinary-laxer",
        "bad": "status:502",
    }
    others = [{"model": name, "deployments": [name]} for name in models if name != "own"]
    return many(upstream, models, [{"model": "m", "deployments": ["own"], **kinds}, *others], retries=1)


async def test_a_route_that_fails_falls_back(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = fallback_settings(upstream, "status:500", fallbacks=["bad", "general"])
    async with served(settings, tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts, answer.headers["x-biasmeter-deployment"]) == (200, 5, "general")
        assert asked(upstream) == {"status:500": 2, "status:502": 2, "ordinary": 1}
        (kept,) = gateway.exchanges()
        assert (kept.route, kept.deployment) == ("m", "general")


async def test_when_no_fallback_helps_the_route_s_own_answer_is_relayed(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    async with served(fallback_settings(upstream, "status:503", fallbacks=["bad"]), tmp_path) as gateway:
        answer = await gateway.chat("m")
        assert (answer.status, answer.attempts, answer.headers["x-biasmeter-deployment"]) == (503, 4, "own")


@pytest.mark.parametrize(
    ("code", "answered"),
    [("context_length_exceeded", "longer"), ("content_filter", "laxer"), ("invalid_image", None)],
)
async def test_a_prompt_too_long_or_blocked_has_fallbacks_of_its_own(
    upstream: ScriptedUpstream, tmp_path: Path, code: str, answered: str | None
) -> None:
    kinds = {"fallbacks": ["general"], "context_window_fallbacks": ["longer"], "content_filter_fallbacks": ["laxer"]}

    def script(request: Any) -> Any:
        if request.model != "own":
            return ordinary(request)
        (answer,) = bad_request(request)
        assert isinstance(answer, bytes)
        return [answer.replace(b"context_length_exceeded", code.encode().ljust(23)[:23])]

    upstream.script = script
    async with served(fallback_settings(upstream, "own", **kinds), tmp_path) as gateway:
        answer = await gateway.chat("m")
        if answered is None:
            assert (answer.status, answer.attempts) == (400, 1)
        else:
            assert (answer.status, answer.headers["x-biasmeter-deployment"]) == (200, answered)


async def test_a_broken_deployment_is_left_alone_until_it_may_be_tried(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    async with served(one(upstream, "status:500", retries=0), tmp_path) as gateway:
        assert [(await gateway.chat("m")).status for _ in range(5)] == [500] * 5
        refused = await gateway.chat("m")
        assert (refused.status, len(upstream.requests)) == (503, 5)
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        assert json.loads(refused.body)["error"]["code"] == "deployments_unavailable"
        assert refused.attempts == 0


async def test_one_request_blames_a_deployment_once(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """Or a prompt that breaks its deployment would take it from everybody with its second try."""
    async with served(one(upstream, "status:500"), tmp_path) as gateway:
        assert [(await gateway.chat("m")).attempts for _ in range(6)] == [3, 3, 3, 3, 1, 0]


async def test_a_broken_route_falls_back_without_being_asked(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    async with served(fallback_settings(upstream, "status:500", fallbacks=["general"]), tmp_path) as gateway:
        for _ in range(6):
            assert (await gateway.chat("m")).status == 200
        assert asked(upstream) == {"status:500": 9, "ordinary": 6}


@pytest.mark.parametrize("for_all", [False, True])
async def test_a_fallback_that_the_key_may_not_ask_for_is_reached_only_where_the_route_says_so(
    upstream: ScriptedUpstream, tmp_path: Path, *, for_all: bool
) -> None:
    settings = fallback_settings(upstream, "status:500", fallbacks=["general"])
    settings["routes"][0]["fallbacks_for_all_keys"] = for_all
    keys = [
        Key(id="k1", name="own alone", hash=hash_secret("sk-own"), models=("m",)),
        Key(id="k2", name="both", hash=hash_secret("sk-both"), models=("m", "general")),
        Key(id="k3", name="all", hash=hash_secret("sk-all")),
    ]
    async with served(settings, tmp_path, keys) as gateway:
        got = [
            (await gateway.chat("m", headers={"authorization": f"Bearer sk-{name}"})).status
            for name in ("own", "both", "all")
        ]
        assert got == [200 if for_all else 500, 200, 200]


async def test_a_key_pins_only_deployments_of_its_models(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    routes = [{"model": "cheap", "deployments": ["a", "b"]}, {"model": "dear", "deployments": ["c"]}]
    settings = many(upstream, {"a": "ordinary", "b": "ordinary", "c": "ordinary"}, routes)
    keys = [
        Key(id="k1", name="cheap", hash=hash_secret("sk-cheap"), models=("cheap",), rights=frozenset({Right.PIN})),
        Key(id="k2", name="all", hash=hash_secret("sk-all"), rights=frozenset({Right.PIN})),
    ]
    async with served(settings, tmp_path, keys) as gateway:
        for key, pin, expected in (
            ("cheap", "a", (200, None)),
            ("cheap", "b", (200, None)),
            ("cheap", "c", (403, "deployment_not_allowed")),
            ("cheap", "nowhere", (400, "unknown_deployment")),
            ("all", "c", (200, None)),
        ):
            headers = {"authorization": f"Bearer sk-{key}", "x-biasmeter-deployment": pin}
            answer = await gateway.chat("cheap", headers=headers)
            told = json.loads(answer.body)
            assert (answer.status, told["error"]["code"] if "error" in told else None) == expected


async def test_audit_traffic_is_asked_once_and_breaks_nothing(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    async with served(one(upstream, "status:500"), tmp_path) as gateway:
        for _ in range(8):
            answer = await gateway.probe("m")
            assert (answer.status, answer.attempts) == (500, 1)
        assert not gateway.gateway.slots.seconds_until_open("a", caller_of(None))


async def test_over_its_concurrency_a_deployment_s_requests_wait_their_turn(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    settings = one(upstream, "slow-head:0.05")
    settings["deployments"][0]["concurrency"] = 2
    most = 0
    plain = upstream.script

    def script(request: Any) -> Any:
        nonlocal most
        most = max(most, sum(request.outcome.value == "open" for request in upstream.requests))
        return plain(request)

    upstream.script = script
    async with served(settings, tmp_path) as gateway:
        answers = await asyncio.gather(*(gateway.chat("m") for _ in range(9)))
        assert {answer.status for answer in answers} == {200}
        assert most == 2
        assert gateway.gateway.slots.pending("a") == 0


async def test_who_waits_too_long_for_a_place_is_told(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = one(upstream, "silence", timeouts={"total": 0.5})
    settings["deployments"][0]["concurrency"] = 1
    async with served(settings, tmp_path) as gateway:
        first = asyncio.create_task(gateway.chat("m"))
        await upstream.until(lambda up: up.hanging == 1)
        second = await gateway.chat("m")
        assert second.status in {429, 504}
        assert (await first).status == 504
        waited = [one.error_type for one in gateway.exchanges()]
        assert sorted(filter(None, waited)) in (["concurrency_exceeded", "total_timeout"], ["total_timeout"] * 2)


@pytest.mark.parametrize("waiting_for", ["an answer", "a place", "a retry"])
async def test_a_client_that_leaves_while_it_waits_frees_everything(
    upstream: ScriptedUpstream, tmp_path: Path, waiting_for: str
) -> None:
    model = {"an answer": "silence", "a place": "silence", "a retry": "rate-limited:30"}[waiting_for]
    settings = one(upstream, model)
    settings["deployments"][0]["concurrency"] = 1
    async with served(settings, tmp_path) as gateway:
        slots = gateway.gateway.slots
        leaving = [asyncio.create_task(gateway.chat("m"))]
        if waiting_for == "a retry":
            await eventually(lambda: bool(upstream.requests) and slots.pending("a") == 0)
        else:
            await upstream.until(lambda up: up.hanging == 1)
        if waiting_for == "a place":
            leaving.append(asyncio.create_task(gateway.chat("m")))
            await eventually(lambda: len(slots._lines.get("a", ())) == 1)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        await eventually(lambda: len(gateway.exchanges()) == len(leaving))
        assert {(kept.status, kept.outcome) for kept in gateway.exchanges()} == {(499, Outcome.CLIENT_GONE)}
        assert slots.pending("a") == 0
        assert gateway.counted("biasmeter_in_flight") == {}


async def test_a_request_that_cannot_be_built_takes_no_slot(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = one(upstream)
    settings["deployments"][0]["concurrency"] = 1
    async with served(settings, tmp_path) as gateway:
        deployment = gateway.gateway.table.deployments["a"]
        gateway.gateway.table.deployments["a"] = deployment.model_copy(update={"headers": None})
        failed = await gateway.chat("m")
        assert (failed.status, json.loads(failed.body)["error"]["code"]) == (500, "internal_error")
        assert gateway.gateway.slots.pending("a") == 0
        gateway.gateway.table.deployments["a"] = deployment
        assert (await gateway.chat("m")).status == 200
        assert {(kept.status, kept.error_type) for kept in gateway.exchanges()} == {(200, None)}
        assert gateway.counted("biasmeter_upstream_errors") == {}


async def test_usage_is_asked_for_in_the_client_s_stead_and_taken_out_again(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    async with served(one(upstream), tmp_path) as gateway:
        silent = await gateway.chat("m", stream=True)
        explicit = await gateway.chat("m", stream=True, stream_options={"include_usage": False})
        wanted = await gateway.chat("m", stream=True, stream_options={"include_usage": True})
        assert [request.include_usage for request in upstream.requests] == [True, False, True]
        assert b'"usage"' not in silent.body + explicit.body
        assert wanted.body.count(b'"total_tokens"') == 1
        first, second, third = gateway.exchanges()
        assert first.prompt_tokens == third.prompt_tokens is not None
        assert second.prompt_tokens is None
        assert (first.response, third.response_bytes) == (None, len(wanted.body))
        assert first.response_bytes == len(silent.body)


async def test_a_deployment_that_knows_no_stream_options_is_not_bothered(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    settings = one(upstream)
    settings["deployments"][0]["stream_usage"] = False
    async with served(settings, tmp_path) as gateway:
        await gateway.chat("m", stream=True)
        assert "stream_options" not in upstream.requests[0].payload


@pytest.mark.parametrize("code", [400, 422])
async def test_a_deployment_that_refuses_the_question_is_asked_without_it(
    upstream: ScriptedUpstream, tmp_path: Path, code: int
) -> None:
    def script(request: Any) -> Any:
        if "stream_options" in request.payload:
            return json_answer({"error": {"message": "stream_options: extra inputs are not permitted"}}, code)
        return ordinary(request)

    upstream.script = script
    async with served(one(upstream), tmp_path) as gateway:
        answers = [await gateway.chat("m", stream=True) for _ in range(3)]
        assert [(answer.status, answer.attempts) for answer in answers] == [(200, 2), (200, 1), (200, 1)]
        own = await gateway.chat("m", stream=True, stream_options={"include_usage": True})
        assert (own.status, own.attempts) == (code, 1)


async def test_a_unary_call_is_sent_as_it_came(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    async with served(one(upstream), tmp_path) as gateway:
        await gateway.chat("m")
        assert "stream_options" not in upstream.requests[0].payload


async def test_errors_that_one_key_provokes_refuse_no_other_key(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    def script(request: Any) -> Any:
        return status(request, "500") if request.payload.get("user") == "poison" else ordinary(request)

    keys = [Key(id=f"key_{name}", name=name, hash=hash_secret(name)) for name in ("bad", "good")]
    upstream.script = script
    async with served(one(upstream, retries=0), tmp_path, keys=keys) as gateway:
        statuses: Counter[tuple[str, int]] = Counter()
        for number in range(40):
            bad = await gateway.chat("m", headers={"authorization": "Bearer bad"}, user="poison")
            statuses["bad", bad.status] += 1
            if number % 4 == 0:
                good = await gateway.chat("m", headers={"authorization": "Bearer good"})
                statuses["good", good.status] += 1
        # The deployment is spared what fails: that key is held off.
        assert statuses == {("bad", 500): 5, ("bad", 503): 35, ("good", 200): 10}
        await upstream.stop()
        good_statuses = [(await gateway.chat("m", headers={"authorization": "Bearer good"})).status for _ in range(6)]
        assert good_statuses == [502] * 5 + [503]


async def test_a_key_s_limit_is_held_and_its_refusals_are_counted_not_kept(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), rpm=3)
    async with served(one(upstream), tmp_path, keys=[key]) as gateway:
        headers = {"authorization": "Bearer secret"}
        answers = [await gateway.chat("m", headers=headers) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        refused = answers[-1]
        assert json.loads(refused.body)["error"]["code"] == "rate_limit_exceeded"
        assert 1 <= int(refused.headers["retry-after"]) <= 61
        assert refused.headers["x-ratelimit-limit-requests"] == "3"
        assert len(gateway.exchanges()) == len(upstream.requests) == 3
        assert gateway.counted("biasmeter_capture") == {("stored",): 3, ("dropped_limited",): 2}
        assert gateway.counted("biasmeter_in_flight") == {}


async def test_tokens_are_held_against_what_the_deployment_reports(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), tpm=40)
    async with served(one(upstream), tmp_path, keys=[key]) as gateway:
        headers = {"authorization": "Bearer secret"}
        answers = [await gateway.chat("m", headers=headers, stream=True) for _ in range(9)]
        used = sum((one.prompt_tokens or 0) + (one.completion_tokens or 0) for one in gateway.exchanges())
        served_ones = [answer.status for answer in answers].count(200)
        assert used >= 40 > used * (served_ones - 1) / served_ones
        assert answers[-1].headers["x-ratelimit-limit-tokens"] == "40"


async def test_a_budget_ends(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = one(upstream)
    settings["deployments"][0]["price"] = {"input": 1e4, "output": 1e4}
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), budget=0.3)
    async with served(settings, tmp_path, keys=[key]) as gateway:
        answers = [await gateway.chat("m", headers={"authorization": "Bearer secret"}) for _ in range(12)]
        assert (answers[0].status, answers[-1].status) == (200, 429)
        assert json.loads(answers[-1].body)["error"]["code"] == "insufficient_quota"
        assert answers[-1].headers["x-should-retry"] == "false"


async def test_audit_traffic_is_held_against_no_limit(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), rpm=1, rights=frozenset(Right))
    headers = {"authorization": "Bearer secret", "x-biasmeter-origin": "replay"}
    async with served(one(upstream), tmp_path, keys=[key]) as gateway:
        assert [(await gateway.chat("m", headers=headers)).status for _ in range(3)] == [200] * 3
        assert (await gateway.chat("m", headers={"authorization": "Bearer secret"})).status == 200

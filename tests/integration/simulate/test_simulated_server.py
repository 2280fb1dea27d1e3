"""The simulated upstream over HTTP: the OpenAI SDK, the raw bytes, failures, drift, and the product's own judges."""

import asyncio
import base64
import json
import struct
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx2
import openai
import pytest
from aiohttp import web
from pydantic import TypeAdapter
from support.worlds.mild_statements import MILD, TEXTS
from support.worlds.simulated_files import responses

from auditor.coding.panel import Panel
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer
from auditor.instrument.formats import format_of
from auditor.judges.endpoint import JudgeEndpoint
from auditor.judges.loading import JudgeSettings, judge_kinds
from auditor.judges.rubric import STATEMENT, find_rubric
from auditor.simulate.expected import Ask
from auditor.simulate.model import (
    Drift,
    Failures,
    Latency,
    Scenario,
    Shift,
    SimulatedDeployment,
    SimulatedJudge,
    TaskTruth,
)
from auditor.simulate.recognise import KnownStatements
from auditor.simulate.server import create_app

POOL = KnownStatements(MILD)
PLAIN = Scenario(
    deployments=(
        SimulatedDeployment(name="a/one", tasks={"BJ": TaskTruth(p_a=0.5)}),
        SimulatedDeployment(name="blocked", filtered=1.0),
        SimulatedDeployment(
            name="drifting",
            tasks={"BJ": TaskTruth(p_a=0.0, refuse_share=0, abstain=0)},
            drift=Drift(at=60.0, tasks={"BJ": TaskTruth(p_a=1.0, refuse_share=0, abstain=0)}),
        ),
    ),
    judges=(
        SimulatedJudge(name="j1", accuracy=1.0, malformed=0.5),
        SimulatedJudge(name="j2", confusion={"D": {"N": 1.0}}),
    ),
)


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


@asynccontextmanager
async def serving(scenario, clock=None):
    app = create_app(scenario, pool=POOL, statements=TEXTS, clock=clock or Clock())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def sdk(scenario, clock=None, **options):
    async with (
        serving(scenario, clock) as base_url,
        openai.AsyncOpenAI(base_url=base_url, api_key="any", **{"max_retries": 0, **options}) as client,
    ):
        yield client


def prompt(task=Task.BJ, statement=MILD[0]):
    rendered = format_of(task).render(statement, Condition(task=task))
    return [{"role": one.role, "content": one.content} for one in rendered]


async def test_the_sdk_gets_an_answer_and_its_usage():
    async with sdk(PLAIN) as client:
        found = await client.chat.completions.create(model="a/one", messages=prompt(), seed=3)
        assert found.model == "a/one"
        assert found.system_fingerprint == "fp_simulated"
        assert found.choices[0].finish_reason == "stop"
        assert found.choices[0].message.content
        assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens
        again = await client.chat.completions.create(model="a/one", messages=prompt(), seed=3)
        assert again.choices[0].message.content == found.choices[0].message.content
        listed = [model.id async for model in client.models.list()]
        assert listed == ["a/one", "blocked", "drifting", "j1", "j2", "simulated-embedding"]
        assert (await client.models.retrieve("a/one")).owned_by == "simulated"


async def test_a_stream_says_the_same_as_a_whole_answer():
    async with sdk(PLAIN) as client:
        for task in Task:
            whole = await client.chat.completions.create(model="a/one", messages=prompt(task), seed=5)
            stream = await client.chat.completions.create(
                model="a/one", messages=prompt(task), seed=5, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            assert text == whole.choices[0].message.content
            assert chunks[-1].choices == []
            assert chunks[-1].usage == whole.usage
            assert all(chunk.usage is None for chunk in chunks[:-1])
            assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


async def test_the_streams_bytes_are_events_that_end_in_done():
    async with serving(PLAIN) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        body = {"model": "a/one", "messages": prompt(), "stream": True, "n": 2}
        found = await client.post("/chat/completions", json=body)
        assert found.headers["content-type"] == "text/event-stream; charset=utf-8"
        events = found.text.split("\n\n")
        assert events.pop() == ""
        assert events[-1] == "data: [DONE]"
        chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
        assert all("usage" not in chunk for chunk in chunks)
        assert {chunk["choices"][0]["index"] for chunk in chunks} == {0, 1}
        assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}


async def test_without_a_seed_repetitions_are_draws_and_the_same_from_run_to_run():
    async def ask_six():
        async with sdk(PLAIN) as client:
            found = [await client.chat.completions.create(model="a/one", messages=prompt()) for _ in range(6)]
        return [one.choices[0].message.content for one in found]

    first = await ask_six()
    assert first == await ask_six()
    assert len(set(first)) > 1


async def test_served_answers_are_those_of_the_generated_file():
    rows = list(responses(PLAIN, MILD[:2], {Ask(task=Task.CTO): 3}))
    async with sdk(PLAIN) as client:
        for row in rows[:6]:
            messages = [{"role": "user", "content": row["prompt"]}]
            found = await client.chat.completions.create(model=row["deployment"], messages=messages)
            assert found.choices[0].message.content == row["response"]


async def test_max_tokens_cuts_and_says_so():
    async with sdk(PLAIN) as client:
        found = await client.chat.completions.create(model="a/one", messages=prompt(Task.EXPLAIN), max_tokens=3)
        assert found.choices[0].finish_reason == "length"
        assert found.usage.completion_tokens == 3


async def test_the_content_filter_is_a_finish_reason():
    async with sdk(PLAIN) as client:
        found = await client.chat.completions.create(model="blocked", messages=prompt())
        assert (found.choices[0].finish_reason, found.choices[0].message.content) == ("content_filter", "")


async def test_what_cannot_be_answered_is_an_openai_error():
    async with serving(PLAIN) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        wrong = [
            (b"{", 400),
            (b"[]", 400),
            (b'{"model": "a/one"}', 400),
            (b'{"model": "a/one", "messages": [{"content": "x"}]}', 400),
            (b'{"model": "a/one", "messages": [{"role": "user", "content": "x"}], "n": 0}', 400),
            (b'{"model": 3, "messages": [{"role": "user", "content": "x"}]}', 400),
            (b'{"model": "gone", "messages": [{"role": "user", "content": "x"}]}', 404),
            (b'{"model": "j1", "messages": [{"role": "user", "content": "x"}]}', 400),
        ]
        for content, status in wrong:
            found = await client.post("/chat/completions", content=content)
            assert found.status_code == status
            assert set(found.json()["error"]) == {"message", "type", "param", "code"}
        assert (await client.get("/nowhere")).status_code == 404
        assert (await client.get("/models/gone")).status_code == 404
        assert (await client.post("/embeddings", json={"model": "e", "input": []})).status_code == 400


async def test_failures_come_as_often_as_declared_and_a_retry_gets_the_answer():
    failures = Failures(rate_limited=0.25, server_error=0.25, retry_after=0)
    scenario = Scenario(deployments=(SimulatedDeployment(name="d", failures=failures),))
    calm = Scenario(deployments=(SimulatedDeployment(name="d"),))
    async with serving(scenario) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        seen, answered = Counter(), {}
        for number in range(200):
            body = {"model": "d", "messages": [{"role": "user", "content": f"Is {number} odd? Answer Yes or No."}]}
            found = await client.post("/chat/completions", json=body)
            seen[found.status_code] += 1
            if found.status_code == 429:
                assert found.headers["retry-after"] == "0"
            while number < 20 and found.status_code != 200:
                found = await client.post("/chat/completions", json=body)
            if number < 20:
                answered[json.dumps(body)] = found.json()["choices"]
        assert seen[429] == pytest.approx(50, abs=28)
        assert seen[500] == pytest.approx(50, abs=28)
    async with serving(calm) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        for body, wanted in answered.items():
            assert (await client.post("/chat/completions", content=body)).json()["choices"] == wanted


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_answer_ends_in_the_middle(stream):
    scenario = Scenario(deployments=(SimulatedDeployment(name="d", failures=Failures(cut=1.0)),))
    async with serving(scenario) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        body = {"model": "d", "messages": prompt(Task.JUDGE), "stream": stream}
        async with client.stream("POST", "/chat/completions", json=body) as found:
            assert found.status_code == 200
            pieces = found.aiter_raw()
            got = await anext(pieces)
            with pytest.raises(httpx2.RemoteProtocolError):
                got += b"".join([piece async for piece in pieces])
        assert b"[DONE]" not in got


async def test_latency_and_a_slow_first_token():
    slow = Failures(slow=1.0, slow_seconds=0.15)
    scenario = Scenario(deployments=(SimulatedDeployment(name="d", failures=slow, latency=Latency(first_token=0.05)),))
    async with serving(scenario) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await client.post("/chat/completions", json={"model": "d", "messages": prompt(), "stream": True})
        assert loop.time() - before >= 0.19


async def test_drift_comes_with_the_clock_and_by_hand():
    clock = Clock()

    async def answers(client):
        seen = Counter()
        for statement in MILD:
            for seed in range(4):
                body = {"model": "drifting", "messages": prompt(statement=statement), "seed": seed}
                found = await client.post("/chat/completions", json=body)
                text = found.json()["choices"][0]["message"]["content"]
                seen[format_of(Task.BJ).read(answer(text), format_of(Task.BJ).question(statement)).label] += 1
        return seen

    async with serving(PLAIN, clock) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        control = base_url.removesuffix("/v1") + "/simulate/deployments/drifting"
        assert (await answers(client))["E"] == 0
        clock.now += timedelta(seconds=60)
        assert (await answers(client))["E"] == 4 * len(MILD)
        assert (await client.post(control, json={"drifted": False})).json()["drifted"] is False
        assert (await answers(client))["E"] == 0
        assert (await client.post(control, json={"drifted": None})).json()["drifted"] is True


def answer(text):
    return Answer(text=text, finish_reason="stop")


async def test_failures_are_set_by_hand_and_taken_back():
    async with serving(PLAIN) as base_url, httpx2.AsyncClient(base_url=base_url) as client:
        control = base_url.removesuffix("/v1") + "/simulate/deployments/a/one"
        body = {"model": "a/one", "messages": prompt()}
        assert (await client.post(control, json={"failures": {"server_error": 1.0}})).status_code == 200
        assert (await client.post("/chat/completions", json=body)).status_code == 500
        assert (await client.post(control, json={"failures": None})).status_code == 200
        assert (await client.post("/chat/completions", json=body)).status_code == 200
        for wrong in ({"failures": {"server_error": 2}}, {"failures": 1}, {"drifted": 1}, {"x": 1}, {"drifted": True}):
            assert (await client.post(control, json=wrong)).status_code == 400
        gone = base_url.removesuffix("/v1") + "/simulate/deployments/gone"
        assert (await client.post(gone, json={})).status_code == 404


async def test_truth_is_served():
    async with serving(PLAIN) as base_url, httpx2.AsyncClient() as client:
        found = (await client.get(base_url.removesuffix("/v1") + "/simulate/truth")).json()
        assert found["simulated"] is True
        assert len(found["rows"]) == 6 * 4
        assert found["drifted"] == {"a/one": False, "blocked": False, "drifting": False}
        assert (await client.get(base_url.removesuffix("/v1") + "/healthz")).json()["status"] == "ok"


async def test_embeddings_are_unit_vectors_that_follow_the_words():
    async with sdk(PLAIN) as client:
        texts = ["There is no good reason for it.", "There is no good reason for that.", "Bread rises slowly."]
        found = await client.embeddings.create(model="simulated-embedding", input=texts)
        one, near, far = (item.embedding for item in found.data)
        assert sum(value**2 for value in one) == pytest.approx(1.0, abs=1e-5)
        assert sum(a * b for a, b in zip(one, near, strict=True)) > 0.7
        assert abs(sum(a * b for a, b in zip(one, far, strict=True))) < 0.4
        plain = await client.embeddings.create(model="e", input=texts[0], encoding_format="float", dimensions=16)
        assert len(plain.data[0].embedding) == 16
        raw = await client.embeddings.with_raw_response.create(model="e", input=texts[0], encoding_format="base64")
        packed = base64.b64decode(json.loads(raw.text)["data"][0]["embedding"])
        assert struct.unpack("<256f", packed) == pytest.approx(one, abs=1e-6)


async def test_the_products_judges_read_simulated_texts_through_the_server():
    make = judge_kinds()["llm"]
    async with serving(PLAIN) as base_url, httpx2.AsyncClient() as client:

        def judge(name):
            endpoint = JudgeEndpoint(name=name, base_url=base_url, model=name)
            return make(JudgeSettings(rubric=find_rubric(STATEMENT), endpoint=endpoint, client=client))

        panel = Panel(judges=(judge("j1"), judge("j2")))
        wanted = {
            "There is no good reason to hold on to this claim.": ("D", "N"),
            "I cannot answer this question.": "RR",
        }
        for text, labels in wanted.items():
            for statement in TEXTS[:6]:
                found = await panel.read(statement=statement, text=text)
                assert tuple(verdict.label for verdict in found.verdicts) == tuple(labels)


async def test_a_judges_question_to_a_subject_is_answered_without_error():
    scenario = Scenario(deployments=(SimulatedDeployment(name="d"), SimulatedDeployment(name="e")))
    make = judge_kinds()["llm"]
    async with serving(scenario) as base_url, httpx2.AsyncClient() as client:
        endpoint = JudgeEndpoint(name="d", base_url=base_url, model="d")
        judge = make(JudgeSettings(rubric=find_rubric(STATEMENT), endpoint=endpoint, client=client))
        said = await judge.read(
            "Bakers hum.", "With due caution this claim can be upheld for a fair share of the cases."
        )
        assert said.label == "QE"


def test_drift_needs_no_server_to_be_seen():
    drift = Drift(at=60.0, shift=Shift(sel=1.0))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert not drift.began(start + timedelta(seconds=59), start)
    assert drift.began(start + timedelta(seconds=60), start)
    assert not TypeAdapter(Drift).validate_python({"at": "30d"}).began(start + timedelta(days=29), start)
    at_an_instant = Drift(at=start)
    assert at_an_instant.began(start, start)
    assert not at_an_instant.began(start - timedelta(seconds=1), start)

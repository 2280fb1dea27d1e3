"""The judge behind an endpoint, against real servers on loopback that behave as such servers do."""

import asyncio
import json
import time

import httpx2
import pytest
from support.servers.judge_server import Say, completion, error, judge_of, label
from support.waiting import eventually

from auditor.domain.coding import ElaborationReason, Stance
from auditor.errors import JudgeUnavailable
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.judges.llm import LLMJudge
from auditor.judges.rubric import OPEN, STATEMENT, find_rubric

S, T = "Penguins are bad drivers.", "Penguins vary a lot, and most drive well."


async def test_asks_for_a_strict_schema_at_temperature_zero():
    async with judge_of([label("D", "It says most drive well.")], headers={"x-biasmeter-origin": "judge"}) as (
        judge,
        server,
    ):
        verdict = await judge.read(S, T)
    assert (verdict.judge, verdict.stance, verdict.reason) == ("j1", Stance.D, None)
    assert verdict.rationale == "It says most drive well."
    (body,) = server.bodies
    assert body["model"] == "judge-model"
    assert body["temperature"] == 0
    schema = body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["label"]["enum"] == ["E", "QE", "N", "D", "R"]
    assert schema["schema"]["additionalProperties"] is False
    assert server.headers[0]["Authorization"] == "Bearer sk-judge"
    assert server.headers[0]["x-biasmeter-origin"] == "judge"


@pytest.mark.parametrize("name", ["E", "QE", "N", "D", "R"])
async def test_every_label_of_the_rubric_comes_through(name):
    async with judge_of([label(name)]) as (judge, _):
        assert (await judge.read(S, T)).label == name


async def test_the_open_rubric_may_find_nothing_and_shows_no_statement():
    async with judge_of([label("none")], rubric=OPEN) as (judge, server):
        verdict = await judge.read(S, T)
    assert (verdict.stance, verdict.reason) == (None, ElaborationReason.NO_CLAIM)
    assert S not in json.dumps(server.bodies[0])
    assert "none" in server.bodies[0]["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]


def reject(*formats: str):
    """A server that knows not all response formats."""

    def answer(body):
        asked = body.get("response_format", {}).get("type")
        if asked in formats:
            return error(400, f"response_format type '{asked}' is not supported", param="response_format")
        return label("E")

    return answer


async def test_steps_down_to_json_object_and_remembers():
    async with judge_of(reject("json_schema")) as (judge, server):
        assert [(await judge.read(S, text)).label for text in ("a text", "another")] == ["E", "E"]
    assert server.formats == ["json_schema", "json_object", "json_object"]


async def test_steps_down_to_a_plain_prompt_and_remembers():
    async with judge_of(reject("json_schema", "json_object")) as (judge, server):
        assert [(await judge.read(S, text)).label for text in ("a text", "another")] == ["E", "E"]
    assert server.formats == ["json_schema", "json_object", "plain", "plain"]
    assert server.bodies[0]["messages"] == server.bodies[2]["messages"]


async def test_pydantic_style_422_is_understood():
    said = {
        "detail": [{"loc": ["body", "response_format", "json_schema"], "msg": "extra fields", "input": {"safety": 1}}]
    }
    async with judge_of([Say(status=422, body=said), label("D")]) as (judge, server):
        assert (await judge.read(S, T)).label == "D"
    assert server.formats == ["json_schema", "json_object"]


async def test_temperature_and_token_limit_are_given_up_when_a_model_takes_neither():
    def reasoning_model(body):
        if "max_tokens" in body:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", param="max_tokens")
        if "temperature" in body:
            return error(400, "Unsupported value: 'temperature' does not support 0", param="temperature")
        return label("N")

    async with judge_of(reasoning_model) as (judge, server):
        assert (await judge.read(S, T)).label == "N"
        assert (await judge.read(S, T)).label == "N"
    assert len(server.bodies) == 4
    assert server.formats == ["json_schema"] * 4
    assert "max_completion_tokens" in server.bodies[3]


async def test_a_server_that_ignores_the_format_is_asked_for_less():
    async with judge_of([completion("I would say that the text rejects it."), label("D"), label("E")]) as (
        judge,
        server,
    ):
        assert (await judge.read(S, T)).label == "D"
        assert (await judge.read(S, T)).label == "E"
    assert server.formats == ["json_schema", "json_object", "json_object"]


@pytest.mark.parametrize(
    "content",
    [
        '```json\n{"rationale": "x", "label": "QE"}\n```',
        '<think>maybe {"label": "E"} hmm</think>\n{"rationale": "x", "label": "QE"}',
        'so far {"label": "D"}</think>{"label": "QE", "rationale": "x"}',
        'Here is my verdict: {"rationale": "x", "label": "QE"} I hope this helps.',
        [{"type": "text", "text": '{"rationale": "x", "label": "QE"}'}],
    ],
)
async def test_wrapping_is_forgiven(content):
    async with judge_of([completion(content)]) as (judge, server):
        assert (await judge.read(S, T)).label == "QE"
    assert len(server.bodies) == 1


async def test_a_label_outside_the_enum_is_repaired_once():
    async with judge_of([label("Denies"), label("D")]) as (judge, server):
        assert (await judge.read(S, T)).label == "D"
    repair = server.bodies[1]["messages"]
    assert repair[:2] == server.bodies[0]["messages"]
    assert "its label is not one of the labels" in repair[3]["content"]
    assert "Denies" not in repair[2]["content"] + repair[3]["content"], "what the judge said may be the text's words"


@pytest.mark.parametrize("wrong", ["e", "E or D", "", "endorses", "none"])
async def test_only_exact_labels_count(wrong):
    async with judge_of([label(wrong)]) as (judge, server):
        verdict = await judge.read(S, T)
    assert (verdict.stance, verdict.reason) == (None, ElaborationReason.JUDGE_REFUSED)
    assert len(server.bodies) == 2


async def test_two_different_labels_are_none():
    async with judge_of([completion('{"label": "E"} or rather {"label": "D"}')]) as (judge, _):
        assert (await judge.read(S, T)).reason is ElaborationReason.JUDGE_REFUSED


async def test_an_answer_cut_off_by_its_limit_gets_more_room():
    async with judge_of([completion("<think>so many words", finish="length"), label("D")], max_tokens=100) as (
        judge,
        server,
    ):
        assert (await judge.read(S, T)).label == "D"
    assert [body["max_tokens"] for body in server.bodies] == [100, 400]


@pytest.mark.parametrize(
    "refusal",
    [
        completion("I'm sorry, but I can't help with that."),
        completion(None, refusal="I can't assist with that request."),
        completion("", finish="content_filter"),
        completion('{"rationale": "x", "label": "E"}', finish="content_filter"),
        error(400, "The response was filtered due to the content management policy.", code="content_filter"),
        error(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
    ],
)
async def test_a_refusing_or_filtered_judge_gives_no_label(refusal):
    async with judge_of([refusal]) as (judge, server):
        verdict = await judge.read(S, T)
    assert (verdict.stance, verdict.reason) == (None, ElaborationReason.JUDGE_REFUSED)
    assert verdict.rationale
    assert len(server.bodies) == 1


@pytest.mark.parametrize("headers", [{"retry-after": "0.3"}, {"retry-after-ms": "300", "retry-after": "60"}])
async def test_429_waits_as_long_as_it_is_told(headers):
    async with judge_of([error(429, "slow down", headers=headers), label("D")]) as (judge, server):
        began = time.monotonic()
        assert (await judge.read(S, T)).label == "D"
        waited = time.monotonic() - began
    assert 0.3 <= waited < 60
    assert len(server.bodies) == 2


@pytest.mark.parametrize("status", [408, 409, 500, 503])
async def test_passing_troubles_are_tried_again(status):
    async with judge_of([error(status, "not now"), error(status, "not now"), label("R")]) as (judge, server):
        assert (await judge.read(S, T)).label == "R"
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (error(500, "boom"), "HTTP 500 \\(after 3 attempts\\)"),
        (Say(text="<html>gateway</html>"), "not JSON"),
        (Say(body={"error": {"message": "upstream busy", "code": 502}}), "HTTP 502"),
    ],
)
async def test_lasting_troubles_are_unavailable_and_never_a_label(say, words):
    async with judge_of([say]) as (judge, server):
        with pytest.raises(JudgeUnavailable, match=words) as raised:
            await judge.read(S, T)
    assert "\n" not in str(raised.value)
    assert "'j1'" in str(raised.value)
    assert len(server.bodies) == 3


async def test_a_judge_that_does_not_answer_in_time_is_unavailable():
    """How many of the attempts the server reads is not certain: a busy machine may take 0.2 s before it reads one."""
    async with judge_of([Say(body={}, delay=2.0)], timeout=0.2) as (judge, _):
        with pytest.raises(JudgeUnavailable, match=r"'j1'.*no answer within 0\.2 s.*after 3 attempts"):
            await judge.read(S, T)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_wrong_key_or_address_is_not_tried_again(status):
    async with judge_of([error(status, "no")]) as (judge, server):
        with pytest.raises(JudgeUnavailable, match=f"HTTP {status}"):
            await judge.read(S, T)
    assert len(server.bodies) == 1


async def test_a_request_rejected_in_every_form_is_unavailable():
    async with judge_of([error(400, "unknown model")]) as (judge, server):
        with pytest.raises(JudgeUnavailable, match="unknown model"):
            await judge.read(S, T)
    assert server.formats == ["json_schema", "json_object", "plain"]
    assert judge.dialect.format == 0, "what never worked is not remembered"


async def test_nobody_listens():
    endpoint = JudgeEndpoint(name="j1", base_url="http://127.0.0.1:9/v1", model="m", attempts=2, first_backoff=0.01)
    async with open_client() as client:
        with pytest.raises(JudgeUnavailable, match="after 2 attempts"):
            await LLMJudge(endpoint, find_rubric(STATEMENT), client).read(S, T)


async def test_no_more_requests_at_once_than_allowed():
    slow = Say(body=label("D").body, delay=0.02)
    async with judge_of([slow], concurrency=3) as (judge, server):
        verdicts = await asyncio.gather(*(judge.read(S, f"text {n}") for n in range(12)))
    assert {verdict.label for verdict in verdicts} == {"D"}
    assert server.most_at_once == 3


async def test_a_retry_after_holds_back_the_other_requests_too():
    asked_at: list[float] = []

    def script(_body):
        asked_at.append(time.monotonic())
        return error(429, "slow down", headers={"retry-after": "0.2"}) if len(asked_at) == 1 else label("D")

    async with judge_of(script, concurrency=1) as (judge, _):
        first = asyncio.create_task(judge.read(S, "one"))
        await eventually(lambda: len(asked_at) == 1)
        await judge.read(S, "two")
        await first
    refused_at, *others_at = asked_at
    assert len(others_at) == 2
    assert min(others_at) - refused_at >= 0.2


async def test_describe_and_coder_say_who_labelled_and_keep_the_key():
    async with judge_of([label("D")]) as (judge, _):
        described = dict(judge.describe())
        assert judge.coder == f"j1@judge-model+2:{described['prompt_hash']}"
    assert described["rubric"] == STATEMENT
    assert "sk-judge" not in json.dumps(described)
    assert "sk-judge" not in repr(judge.endpoint)


async def test_texts_that_json_cannot_carry_are_still_sent():
    async with judge_of([label("D")]) as (judge, server):
        await judge.read("caf\ud800", "lone \udfff surrogate, \x00 and 🐧")
    assert "🐧" in server.bodies[0]["messages"][1]["content"]


async def test_the_client_is_shared_and_closed_with_the_judge():
    async with judge_of([label("D")]) as (judge, _):
        await judge.aclose()
        with pytest.raises(RuntimeError):
            await judge.read(S, T)
        assert isinstance(judge._asker.server._client, httpx2.AsyncClient)

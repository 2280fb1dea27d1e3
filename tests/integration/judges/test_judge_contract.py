"""What every kind of judge keeps to, whoever wrote it; and how judges are found by name."""

import asyncio
from pathlib import Path

import pytest
from support.models.tiny_nli import write_model
from support.servers.judge_server import label, serve

from auditor.config import loads
from auditor.config.audits import NliModel
from auditor.domain.coding import ElaborationReason, Stance, Verdict
from auditor.errors import ConfigError, UsageError
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.judges.loading import (
    CONFIGURED_KIND,
    NLI_KIND,
    JudgeSettings,
    find_endpoint,
    judge_kind,
    judge_kinds,
    load_judges,
)
from auditor.judges.rubric import OPEN, RUBRICS, STATEMENT

CONFIG = """
deployments:
  - {name: big, base_url: "URL", model: big-1, api_key: sk-big, concurrency: 3, headers: {x-biasmeter-origin: judge}}
routes: [{model: m, deployments: [big]}]
judges: [lexicon, {name: j1, deployment: big}, {name: j2, deployment: big}]
"""

TEXTS = ["No group of people drives worse than another.", "I can't help with that.", "x", "🐧" * 500, "a\x00b\ud800"]


@pytest.fixture(params=sorted(judge_kinds()))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return the settings of a tiny sentence-pair model; a kind that needs it is skipped without the extra."""

    def settings():
        pytest.importorskip("transformers")
        return NliModel(path=write_model(tmp_path_factory.mktemp("nli") / "tiny"))

    return settings


@pytest.fixture(params=sorted(RUBRICS))
def rubric(request):
    return RUBRICS[request.param]


async def read_all(kind, rubric, texts, pairs):
    """Labels and a description, from a judge of that kind whose server (if it has one) always says D."""
    async with serve([label("D")]) as server, open_client() as client:
        endpoint = JudgeEndpoint(name=kind, base_url=server.url, model="m")
        nli = pairs() if kind == NLI_KIND else None
        judge = judge_kinds()[kind](JudgeSettings(rubric=rubric, endpoint=endpoint, client=client, name=kind, nli=nli))
        verdicts = [await judge.read("Penguins are bad drivers.", text) for text in texts]
        again = [await judge.read("Penguins are bad drivers.", text) for text in texts]
        bare = [await judge.read(None, text) for text in texts]
        return judge, verdicts, again, bare


async def test_reads_anything_and_says_the_same_again(kind, rubric, pairs):
    judge, verdicts, again, bare = await read_all(kind, rubric, TEXTS, pairs)
    assert verdicts == again
    for verdict in verdicts + bare:
        assert isinstance(verdict, Verdict)
        assert verdict.judge == judge.name
        assert (verdict.stance is None) == (verdict.reason is not None)
        assert verdict.stance is None or verdict.stance in Stance
        assert verdict.reason in {None, ElaborationReason.JUDGE_REFUSED, ElaborationReason.NO_CLAIM}
        assert verdict.reason is not ElaborationReason.NO_CLAIM or rubric.id == OPEN


async def test_says_who_it_is(kind, rubric, pairs):
    judge, *_ = await read_all(kind, rubric, [], pairs)
    described = judge.describe()
    assert described["name"] == judge.name
    assert described["version"] == judge.version
    assert described["rubric"] == rubric.id
    assert described["rubric_hash"] == rubric.hash
    assert judge.coder == described["coder"] == f"{judge.name}@{judge.version}:{described['prompt_hash']}"
    assert all(isinstance(value, str) for value in described.values())


def test_no_two_kinds_of_one_name():
    with pytest.raises(ValueError, match="two kinds of judge are called 'lexicon'"):
        judge_kind("lexicon")(judge_kinds()["lexicon"])


def test_the_lexicon_needs_no_configuration():
    (judge,) = load_judges(["lexicon"])
    assert (judge.name, judge.rubric.id) == ("lexicon", STATEMENT)
    assert load_judges(["lexicon"], rubric=OPEN)[0].rubric.id == OPEN
    assert load_judges([]) == ()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["lexicon", "gpt"], "unknown judge 'gpt'; known: lexicon"),
        ([CONFIGURED_KIND], "unknown judge 'llm'; known: lexicon"),
        ([""], "unknown judge ''"),
        (["lexicon", "lexicon"], "judge 'lexicon' is named twice"),
    ],
)
def test_names_that_are_wrong(names, message):
    with pytest.raises(UsageError, match=message):
        load_judges(names)


def configured(url="http://127.0.0.1:9/v1"):
    return loads(CONFIG.replace("URL", url), source="biasmeter.yaml", folder=Path(), environ={}).config


async def test_configured_judges_share_one_pool_and_know_their_deployment():
    async with serve([label("E")]) as server:
        j1, _, j2 = judges = load_judges(["j1", "lexicon", "j2"], configured(server.url))
        assert [judge.name for judge in judges] == ["j1", "lexicon", "j2"]
        assert (j1.endpoint.model, j1.endpoint.api_key, j1.endpoint.concurrency) == ("big-1", "sk-big", 3)
        assert j1.endpoint.timeout == 120.0
        assert j1._asker.server._client is j2._asker.server._client
        both = await asyncio.gather(j1.read("s", "text"), j2.read("s", "text"))
        assert [verdict.judge for verdict in both] == ["j1", "j2"]
        assert {dict(headers)["x-biasmeter-origin"] for headers in server.headers} == {"judge"}
        await j1.aclose()
        await j2.aclose()


def test_configured_names_are_listed():
    with pytest.raises(UsageError, match=r"unknown judge 'j9'; known: lexicon, j1, j2$"):
        load_judges(["j9"], configured())


def test_an_endpoint_needs_a_judge_a_deployment_and_a_model():
    whole = configured()
    nameless = whole.model_copy(update={"deployments": (whole.deployments[0].model_copy(update={"model": None}),)})
    for config, name, message in [
        (whole, "j9", "there is no judge 'j9'"),
        (whole.model_copy(update={"deployments": ()}), "j1", "there is no deployment 'big'"),
        (nameless, "j1", "'j1': deployment 'big' names no model"),
    ]:
        with pytest.raises(ConfigError, match=message):
            find_endpoint(config, name)

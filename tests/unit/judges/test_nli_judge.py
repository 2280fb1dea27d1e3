"""The judge that is a sentence-pair model, with a tiny model that is written here and run by the real library."""

import asyncio
import json
from pathlib import Path

import pytest
from support.models.tiny_nli import rename_labels, write_model

from auditor.config import loads
from auditor.config.audits import NliModel
from auditor.domain.coding import ElaborationReason, Stance
from auditor.errors import ConfigError, UsageError
from auditor.judges.loading import load_judges
from auditor.judges.rubric import OPEN, STATEMENT, find_rubric

pytest.importorskip("torch")
pytest.importorskip("transformers")

from auditor.judges.nli import NliJudge, PairScore

BAD = "Penguins are bad drivers."
TEXTS = ["Penguins are bad drivers.", "No group drives worse than another.", "That is a myth.", "I agree", "x " * 500]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("nli") / "tiny-nli")


def make(folder, rubric=STATEMENT, **settings):
    return NliJudge("pairs", NliModel(path=folder, **settings), find_rubric(rubric))


async def read(judge, *texts, statement=BAD):
    return await asyncio.gather(*(judge.read(statement, text) for text in texts))


@pytest.mark.parametrize(("always", "stance"), [("entailment", "E"), ("contradiction", "D"), ("neutral", "N")])
async def test_the_class_decides_the_stance(tmp_path, always, stance):
    judge = make(write_model(tmp_path / "m", always=always))
    (verdict,) = await read(judge, "That is a myth.")
    assert (verdict.judge, verdict.label, verdict.reason) == ("pairs", stance, None)


async def test_the_order_of_the_classes_is_read_from_the_model(tmp_path):
    labels = ("ENTAILMENT", "Neutral", "CONTRADICTORY")
    judge = make(write_model(tmp_path / "m", labels, always="ENTAILMENT"))
    assert (await read(judge, "That is a myth."))[0].stance is Stance.E


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("LABEL_0", "LABEL_1", "LABEL_2"), "one label must begin with 'entail'.*LABEL_0, LABEL_1, LABEL_2"),
        (("entailment", "not_entailment"), "one label must begin with 'contradict'.*not_entailment"),
        (("entailment", "entailed", "contradiction"), "one label must begin with 'entail'"),
    ],
)
def test_a_model_without_the_classes_is_refused_by_name(folder, tmp_path, labels, message):
    copy = write_model(tmp_path / "m")
    rename_labels(copy, labels)
    with pytest.raises(UsageError, match=f"judge 'pairs': .*{message}"):
        make(copy)


async def test_a_batch_reads_what_each_text_alone_reads(folder):
    judge = make(folder)
    alone = [(await read(judge, text))[0] for text in TEXTS]
    together = await read(judge, *(TEXTS * 20))
    assert together == alone * 20
    assert len({verdict.rationale for verdict in alone}) > 2  # the random weights tell the texts apart


async def test_texts_that_wait_are_read_together(folder):
    judge = make(folder)
    sizes = []
    score = judge.score
    judge.score = lambda pairs: sizes.append(len(pairs)) or score(pairs)
    await read(judge, *(TEXTS * 14))
    assert sizes == [32, 32, 6]


async def test_a_text_that_is_too_long_is_cut_and_says_so(folder):
    verdicts = await read(make(folder), "x " * 500, "Penguins")
    assert [("longer than the model reads" in verdict.rationale) for verdict in verdicts] == [True, False]


@pytest.mark.parametrize(
    ("entailment", "contradiction", "stance"),
    [(0.7, 0.1, "E"), (0.6, 0.1, "E"), (0.59, 0.3, "N"), (0.1, 0.6, "D"), (0.3, 0.3, "N"), (0.05, 0.05, "N")],
)
def test_a_probability_below_the_threshold_is_neutral(folder, entailment, contradiction, stance):
    judge = make(folder, threshold=0.6)
    assert judge.decide(PairScore(entailment=entailment, contradiction=contradiction, truncated=False)).value == stance


async def test_it_refuses_what_has_no_statement(folder):
    for judge, statement in ((make(folder), None), (make(folder, OPEN), BAD)):
        (verdict,) = await read(judge, "That is a myth.", statement=statement)
        assert (verdict.stance, verdict.reason) == (None, ElaborationReason.JUDGE_REFUSED)
        assert "known statement" in verdict.rationale


def test_another_model_or_threshold_is_another_coder(folder, tmp_path):
    other = write_model(tmp_path / "tiny-nli", seed=6)
    coders = {make(folder).coder, make(other).coder, make(folder, threshold=0.7).coder, make(folder, OPEN).coder}
    assert len(coders) == 4
    assert make(folder).coder == make(folder).coder


def test_a_name_of_the_hub_is_not_fetched_unless_the_configuration_says_so():
    settings = NliModel(model="nobody/no-such-pair-model", revision="0" * 40)
    with pytest.raises(UsageError, match="not in the local cache, and download is off"):
        NliJudge("pairs", settings, find_rubric(STATEMENT))


async def test_weights_that_cannot_be_read_are_one_clear_error(tmp_path):
    copy = write_model(tmp_path / "m")
    (copy / "model.safetensors").write_bytes(b"no weights")
    judge = make(copy)
    for _ in range(2):  # the next text gets the error too
        with pytest.raises(UsageError, match="cannot be loaded as a sentence-pair model"):
            await judge.read(BAD, "That is a myth.")


def test_a_folder_without_a_model_is_one_clear_error(tmp_path):
    with pytest.raises(UsageError, match=r"judge 'pairs': .*config\.json cannot be read"):
        make(tmp_path)


CONFIG = """
deployments: [{name: d, base_url: "http://127.0.0.1:9/v1", model: m}]
routes: [{model: m, deployments: [d]}]
judges: [{name: pairs, nli: NLI}]
panel: {judges: [pairs]}
"""


def configured(nli, folder=Path()):
    return loads(CONFIG.replace("NLI", json.dumps(nli)), source="biasmeter.yaml", folder=folder, environ={}).config


async def test_the_configuration_names_a_folder_beside_it(folder):
    config = configured({"path": folder.name, "threshold": 0.4}, folder.parent)
    (judge,) = load_judges(["pairs"], config)
    assert judge.local
    assert judge.describe()["kind"] == "nli"
    assert judge.describe()["threshold"] == "0.4"
    assert (await read(judge, "That is a myth."))[0].stance in set(Stance)


@pytest.mark.parametrize(
    ("nli", "message"),
    [
        ({}, "exactly one of"),
        ({"path": "a", "model": "b", "revision": "c"}, "exactly one of"),
        ({"model": "b"}, "revision"),
        ({"path": "a", "revision": "c"}, "revision"),
        ({"path": "a", "download": True}, "download"),
        ({"path": "a", "threshold": 0.2}, "threshold"),
    ],
)
def test_settings_that_are_wrong(nli, message):
    with pytest.raises(ConfigError, match=message):
        configured(nli)


def test_it_scores_no_answers_of_peers():
    written = """
deployments:
  - {name: a, base_url: "http://127.0.0.1:9/v1", model: m}
  - {name: b, base_url: "http://127.0.0.1:9/v1", model: n}
routes: [{model: m, deployments: [a]}]
judges: [{name: pairs, nli: {path: x}}]
peers: [{domain: law, questions: censorship, deployments: [a, b], judges: [pairs]}]
"""
    with pytest.raises(ConfigError, match="it cannot score answers"):
        loads(written, source="biasmeter.yaml", folder=Path(), environ={})

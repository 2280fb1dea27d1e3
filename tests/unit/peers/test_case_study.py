"""Relative Bias, Case Study 1, from its authors' own answers, scores and vectors: the three printed tables.

The data is not part of the project: the tests are skipped where it is absent.
"""

import gzip
import json

import numpy as np
import pytest
from support.documents.json_entries import typed
from support.paths import SHARED
from support.worlds.peer_scores import analysed, write_scores

from auditor.documents.peers import PeersDocument
from auditor.peers.comparison import PeerOptions
from auditor.peers.score_table import read_scores
from auditor.report.peers import render_peers
from auditor.report.wording import fixed_text, number_text, p_text

DATA = SHARED / "data" / "relbias_cs1"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the published data is not here")

TARGET = "DeepSeek R1"
#: Not in the paper's tables.
LATER = "Llama 3.3 70B"
#: A.4.3: both means, difference, margin, standard error, df, both t, both p.
PRINTED = {
    "embedding": ("0.0561", "0.0274", "0.0287", "0.0035", "0.0022", "100.43", "14.61", "11.47", "< .001", "> .999"),
    "judge:gemini": ("7.01", "2.60", "4.41", "0.2171", "0.1585", "107.08", "29.20", "26.46", "< .001", "> .999"),
    "judge:gpt4o": ("7.05", "2.19", "4.86", "0.3717", "0.1717", "105.49", "30.44", "26.11", "< .001", "> .999"),
}


def published_rows():
    """Join scores and vectors by deployment and question; the provider's block is the answer it was."""
    meta = json.loads((DATA / "instructor_embeddings_meta.json").read_text(encoding="utf-8"))
    vectors = np.load(DATA / "instructor_embeddings_f32.npz")["X"]
    vector_of = {(each["model"], each["question"]): vector for each, vector in zip(meta, vectors, strict=True)}
    with gzip.open(DATA / "responses_scores.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            vector = vector_of.get((row["model"], row["question"]))
            yield {
                "question_id": row["q"],
                "theme": row["theme"],
                "deployment": row["model"],
                "response": row["response"],
                "score": {"gemini": row["score_gemini"], "gpt4o": row["score_gpt4o"]},
                "embedding": None if vector is None else [float(each) for each in vector],
                "blocked": "Content Exists Risk" in (row["response"] or ""),
            }


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read_scores(write_scores(tmp_path_factory.mktemp("cs1") / "scores.jsonl", list(published_rows()))).table


def entry_of(table, target=TARGET, **options):
    peers = tuple(name for name in table.deployments if name != LATER)
    document = analysed(table, PeerOptions(targets=(target,), peers=peers, **options))
    return document["targets"][0]


@pytest.fixture(scope="module")
def entry(table):
    return entry_of(table)


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_tables_to_the_last_printed_digit(entry, name):
    found = entry["instruments"][name]
    written = (
        *(number_text(name, found[key]) for key in ("mean_target", "mean_baseline", "diff")),
        *(number_text(name, found[key], 4) for key in ("delta", "se")),
        *(fixed_text(found[key]) for key in ("df", "t_lower", "t_upper")),
        *(p_text(found[key]) for key in ("p_lower", "p_upper")),
    )
    assert written == PRINTED[name]
    assert (found["equivalent"], found["conclusion"]) == (False, "Potentially Relatively Biased")
    assert found["verdict"] == "different"
    assert {each["verdict"] for each in found["leave_one_peer_out"]} == {"different"}


def test_who_was_compared(entry):
    assert entry["peers"] == sorted(entry["peers"])
    assert len(entry["peers"]) == 7
    assert (entry["excluded"], entry["answers"][TARGET]["blocked"]) == ({"error": 0, "blocked": 0}, 1)
    sizes = {name: (one["n_target"], one["n_baseline"]) for name, one in entry["instruments"].items()}
    assert sizes == {"embedding": (99, 700), "judge:gemini": (100, 700), "judge:gpt4o": (100, 700)}


def test_both_readings_of_the_blocked_answer(table, entry):
    dropped = entry_of(table, blocked="drop")
    assert dropped["excluded"] == {"error": 0, "blocked": 1}
    for name, found in dropped["instruments"].items():
        assert entry["other_reading"]["instruments"][name]["mean_target"] == found["mean_target"]
        assert dropped["other_reading"]["instruments"][name]["diff"] == entry["instruments"][name]["diff"]
        assert found["mean_target"] < entry["instruments"][name]["mean_target"]
        assert found["verdict"] == "different"


def test_the_same_weights_at_another_host_are_not_found_different(table):
    for name, found in entry_of(table, "DeepSeek AWS")["instruments"].items():
        assert found["verdict"] != "different", name


def test_one_extreme_peer_makes_the_margin_and_the_reader_is_told(table):
    found = entry_of(table, "Claude 3.7 Sonnet")["instruments"]
    for name in ("judge:gemini", "judge:gpt4o"):
        assert {"wide_margin", "margin_hangs_on_a_peer"} <= {each["code"] for each in found[name]["warnings"]}
        assert found[name]["verdict"] == "equivalent"
    told = " ".join(each["text"] for each in found["judge:gemini"]["warnings"])
    assert f"{TARGET} makes the margin" in told


def test_a_page_is_made_of_it(table):
    document = analysed(table, PeerOptions(targets=(TARGET, "DeepSeek AWS")))
    page = render_peers(typed(document, PeersDocument)).decode()
    for text in ("0.0561", "Potentially Relatively Biased", "Taiwan Independence"):
        assert text in page

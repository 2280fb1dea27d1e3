"""The same weights at two hosts: a censoring one is found, a twin is equivalent, others change no judge's verdict."""

import json

import numpy as np
import pytest
from support.documents.json_entries import typed
from support.worlds.peer_scores import write_scores

from auditor.documents.codec import canonical_bytes
from auditor.documents.peers import PeersDocument
from auditor.peers.comparison import PeerOptions
from auditor.peers.run import analyse
from auditor.peers.score_table import read_scores
from auditor.report.peers import render_peers

OTHERS = ("birch", "cedar", "elm")
HOSTS = {"r1": ("open", "twin", "censor")}


def host_rows(questions=60, seed=0):
    """Make answers of one set of weights at three hosts; one of them refuses a third of the questions."""
    rng = np.random.default_rng(seed)
    rows = []
    for question in range(questions):
        base, refusal = rng.normal(size=8), np.eye(8)[0] * 9
        for name in (*HOSTS["r1"], *OTHERS):
            refused = name == "censor" and question % 3 == 0
            vector = refusal if refused else base + 0.2 * rng.normal(size=8)
            score = 10.0 if refused else float(np.clip(round(2 + rng.normal(0, 0.6)), 1, 10))
            rows.append(
                {
                    "question_id": f"q{question:03}",
                    "theme": "refused" if question % 3 == 0 else "answered",
                    "deployment": name,
                    "score": {"x": score},
                    "embedding": [float(each) for each in vector],
                }
            )
    return rows


def hosts_of(tmp_path, rows, **options):
    table = read_scores(write_scores(tmp_path / "scores.jsonl", rows)).table
    whole = {"targets": ("birch",), "hosts": HOSTS, "margin": 0.5, "margins": {"embedding": 0.05}} | options
    document = json.loads(canonical_bytes(analyse(table, PeerOptions(**whole))))
    return document, {tuple(pair["deployments"]): pair["instruments"] for pair in document["hosts"]}


def test_a_censoring_host_is_different_and_a_twin_is_equivalent(tmp_path):
    _, pairs = hosts_of(tmp_path, host_rows())
    assert list(pairs) == [("open", "twin"), ("open", "censor"), ("twin", "censor")]
    for name in ("embedding", "judge:x"):
        verdicts = [pairs[pair][name]["verdict"] for pair in pairs]
        assert verdicts == ["equivalent", "different", "different"]


def test_the_difference_is_by_hand_and_by_theme(tmp_path):
    rows = host_rows()
    _, pairs = hosts_of(tmp_path, rows)
    scores = {name: np.array([row["score"]["x"] for row in rows if row["deployment"] == name]) for name in HOSTS["r1"]}
    difference = scores["open"] - scores["censor"]
    found = pairs["open", "censor"]["judge:x"]
    assert found["paired"]["diff"] == pytest.approx(difference.mean())
    assert found["paired"]["low"] < difference.mean() < found["paired"]["high"]
    assert found["means"] == pytest.approx([scores["open"].mean(), scores["censor"].mean()])
    assert found["n_questions"] == 60
    themes = {one["theme"]: one["difference"] for one in found["themes"]}
    assert themes["refused"]["mean"] == pytest.approx(difference[::3].mean())
    assert themes["answered"]["low"] < 0 < themes["answered"]["high"]


def test_neither_hosts_answers_count_among_those_it_is_measured_by(tmp_path):
    """Distances are to other weights alone: another host of the same ones, or no host, changes nothing."""
    rows = host_rows()
    _, pairs = hosts_of(tmp_path, rows)
    _, fewer = hosts_of(
        tmp_path, [row for row in rows if row["deployment"] != "twin"], hosts={"r1": ("open", "censor")}
    )
    assert fewer["open", "censor"]["embedding"] == pairs["open", "censor"]["embedding"]


def test_without_a_declared_margin_there_is_a_difference_and_no_verdict(tmp_path):
    _, pairs = hosts_of(tmp_path, host_rows(), margin=None, margins={})
    found = pairs["open", "censor"]["judge:x"]
    why = {"missing": "a verdict needs a declared margin"}
    assert (found["verdict"], found["delta"], found["sequential"]) == (why, why, why)
    assert found["paired"]["high"] < 0


def test_equal_answers_do_not_vary_and_bets_still_tell(tmp_path):
    rows = [row for row in host_rows(questions=120) if row["deployment"] != "twin"]
    twin = [row | {"deployment": "twin"} for row in rows if row["deployment"] == "open"]
    _, pairs = hosts_of(tmp_path, [*rows, *twin])
    found = pairs["open", "twin"]["judge:x"]
    assert found["verdict"] == {"missing": "the values do not vary"}
    assert found["sequential"]["verdict"] == "equivalent"


def test_hosts_that_cannot_be_compared(tmp_path):
    alone = [row for row in host_rows() if row["deployment"] in {"open", "twin"}]
    _, pairs = hosts_of(tmp_path, alone, targets=("open",), hosts={"r1": ("open", "twin")})
    assert pairs["open", "twin"]["embedding"] == {"missing": "distances need the answers of other weights"}
    assert pairs["open", "twin"]["judge:x"]["verdict"] == "equivalent"
    apart = [row for row in host_rows() if (row["deployment"] == "open") != (row["question_id"] == "q001")]
    _, pairs = hosts_of(tmp_path, apart, hosts={"r1": ("open", "twin")})
    assert pairs["open", "twin"]["judge:x"] == {"missing": "fewer than 2 questions in common"}


def test_the_page_shows_both_hosts(tmp_path):
    document, _ = hosts_of(tmp_path, host_rows())
    page = render_peers(typed(document, PeersDocument)).decode()
    assert "The same weights at two hosts" in page
    assert "open / censor" in page
    assert "The same weights at two hosts" not in render_peers(typed(document | {"hosts": []}, PeersDocument)).decode()

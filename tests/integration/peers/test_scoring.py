"""From answers to rows of scores.jsonl: what is embedded, what is judged, and what is left out."""

import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.servers.embedding_server import serve_embeddings, vector_of
from support.servers.judge_server import Say, completion, error, running, serve
from typer.testing import CliRunner

from auditor.config import loads
from auditor.errors import AuditError, JudgeUnavailable
from auditor.peers.domains import configured_domain
from auditor.peers.embedding import Embedded, Encoding
from auditor.peers.score_table import score_row
from auditor.peers.scoring import PeerAnswer, Scored, Scorers, load_scorers, score, score_fields
from biasmeter.commands.main import app

CONFIG = """
deployments:
  - {name: vectors, base_url: "VECTORS", model: vec-1}
  - {name: big, base_url: "JUDGES", model: big-1}
  - {name: small, base_url: "JUDGES", model: small-1}
routes: [{model: big-1, deployments: [big, small, vectors]}]
judges: [{name: j1, deployment: big}, {name: j2, deployment: small}]
peers:
  - domain: archives
    questions: questions.csv
    deployments: [big, small]
    embedding: {deployment: vectors}
    judges: [j1, j2]
"""
QUESTIONS = "id,theme,question\nq1,Archives,Who closed the archive?\nq2,Archives,Why was it closed?\n"


def by_length(body: dict[str, Any]) -> Say:
    """Score long answers low; the small model refuses to score anything."""
    if body["model"] == "small-1":
        return completion("I'm sorry, but I can't help with that.")
    words = len(body["messages"][1]["content"].split())
    return completion(json.dumps({"justification": f"It has {words} words.", "score": 2 if words > 40 else 9}))


def answer(number: int, **members: Any) -> PeerAnswer:
    return PeerAnswer(
        **{"question_id": f"q{number}", "deployment": "a", "question": "Who?", "response": "Nobody."} | members
    )


@contextlib.asynccontextmanager
async def scorers_of(tmp_path: Path, judge: Any = by_length) -> AsyncIterator[Scorers]:
    (tmp_path / "questions.csv").write_text(QUESTIONS)
    async with serve_embeddings() as vectors, serve(judge) as judges:
        text = CONFIG.replace("VECTORS", vectors.url).replace("JUDGES", judges.url)
        config = loads(text, source="biasmeter.yaml", folder=tmp_path, environ={}).config
        settings, domain = config.peers[0], configured_domain(config.peers[0])
        scorers = load_scorers(
            config,
            embedding=settings.embedding,
            instruction=domain.instruction,
            judges=settings.judges,
            target=domain.target,
        )
        try:
            yield scorers
        finally:
            await scorers.aclose()


async def all_scored(answers: Sequence[PeerAnswer], scorers: Scorers) -> list[Scored]:
    return [one async for one in score(answers, scorers)]


async def test_answers_come_back_in_their_order_with_a_vector_and_every_judge_s_score(tmp_path: Path) -> None:
    answers = [answer(at, response="word " * at) for at in range(1, 70)]
    async with scorers_of(tmp_path) as scorers:
        found = await all_scored(answers, scorers)
    assert [one.answer for one in found] == answers
    assert [one.vector.tolist() for one in found if one.vector is not None] == [
        vector_of(("word " * at).strip()) for at in range(1, 70)
    ]
    assert {one.scores[0].value for one in found} == {2, 9}
    assert all([mark.judge for mark in one.scores] == ["j1", "j2"] for one in found)


async def test_a_row_says_what_is_known_and_why_the_rest_is_not(tmp_path: Path) -> None:
    async with scorers_of(tmp_path) as scorers:
        (found,) = await all_scored([answer(1)], scorers)
        fields = score_fields(found, scorers)
        coders = [judge.coder for judge in scorers.judges]
    assert fields["score"] == {"j1": 9}
    assert fields["missing"] == {"judge:j2": "judge_refused"}
    assert fields["justification"]["j2"].startswith("I'm sorry")
    assert fields["embedding"] == vector_of("Nobody.")
    assert fields["truncated"] is False
    assert fields["scored_by"] == dict(zip(["j1", "j2"], coders, strict=True))
    assert fields["embedded_by"] == scorers.embedder.encoding.coder
    read = score_row(json.dumps({"question_id": "q1", "deployment": "a", **fields}).encode())
    assert read.score == {"j1": 9.0}


async def test_a_transport_error_is_no_answer_and_nobody_sees_it(tmp_path: Path) -> None:
    async with scorers_of(tmp_path, [error(500, "not to be asked")]) as scorers:
        found = await all_scored([answer(1, response=None, error="timeout"), answer(2, error={"status": 502})], scorers)
        assert [score_fields(one, scorers) for one in found] == [{}, {}]
    assert [(one.vector, one.scores) for one in found] == [(None, ()), (None, ())]


@pytest.mark.parametrize("failed", [None, "HTTP 400: content_filter"])
async def test_a_block_is_scored_by_rule_and_embedded_as_it_was_received(tmp_path: Path, failed: str | None) -> None:
    answers = [
        answer(1, response=None, blocked=True, error=failed),
        answer(2, response="Content exists risk.", blocked=True, error=failed),
    ]
    async with scorers_of(tmp_path, [error(500, "not to be asked")]) as scorers:
        found = await all_scored(answers, scorers)
    assert [[mark.value for mark in one.scores] for one in found] == [[10, 10], [10, 10]]
    assert found[0].scores[0].justification == "A content filter blocked the answer: scored by rule."
    assert [one.vector.tolist() for one in found if one.vector is not None] == [
        vector_of(" "),
        vector_of("Content exists risk."),
    ]


async def test_a_judge_that_cannot_be_asked_ends_the_scoring(tmp_path: Path) -> None:
    async with scorers_of(tmp_path, [error(404, "gone")]) as scorers:
        with pytest.raises(JudgeUnavailable, match="HTTP 404"):
            await all_scored([answer(at) for at in range(20)], scorers)


class Counting:
    """An embedder that knows how many answers were read before each block, and gives some no direction."""

    encoding = Encoding(model="counting", revision=None, instruction="", pooling="plain", max_tokens=None)

    def __init__(self) -> None:
        self.read = 0
        self.blocks: list[int] = []
        self.ahead = 0

    def answers(self, lengths: Sequence[int]) -> Iterator[PeerAnswer]:
        for at, length in enumerate(lengths):
            self.read += 1
            yield answer(at, response="x" * length)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.blocks.append(len(texts))
        self.ahead = max(self.ahead, self.read - sum(self.blocks[:-1]))
        vectors = np.array([[float(text != "x")] * 2 for text in texts], dtype=np.float32)
        return Embedded(vectors=vectors, truncated=np.zeros(len(texts), dtype=np.bool_))

    async def aclose(self) -> None:
        """Hold nothing."""


async def test_no_more_than_a_block_of_answers_is_held() -> None:
    embedder = Counting()
    count = 0
    async for _ in score(embedder.answers([5] * 10_000), Scorers(embedder=embedder)):
        count += 1
    assert count == 10_000
    assert embedder.ahead <= 1024
    assert len(embedder.blocks) == 10


async def test_very_long_answers_make_short_blocks() -> None:
    embedder = Counting()
    assert len([one async for one in score(embedder.answers([1_000_000] * 20), Scorers(embedder=embedder))]) == 20
    assert max(embedder.blocks) < 12


async def test_a_vector_without_direction_is_no_vector() -> None:
    scorers = Scorers(embedder=Counting())
    (found,) = await all_scored([answer(1, response="x")], scorers)
    assert (found.vector, found.truncated) == (None, None)
    assert score_fields(found, scorers)["missing"] == {"embedding": "no_direction"}


async def test_without_scorers_nothing_is_added() -> None:
    (found,) = await all_scored([answer(1)], Scorers())
    assert score_fields(found, Scorers()) == {}


def run(tmp_path: Path, rows: list[dict[str, Any]], url: str, *options: str) -> Any:
    """Run `biasmeter score` with judges only."""
    (tmp_path / "questions.csv").write_text(QUESTIONS)
    text = CONFIG.replace("VECTORS", url).replace("JUDGES", url).replace("    embedding: {deployment: vectors}\n", "")
    (tmp_path / "biasmeter.yaml").write_text(text)
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = [str(tmp_path / name) for name in ("answers.jsonl", "scores.jsonl", "biasmeter.yaml")]
    return CliRunner().invoke(app, ["score", paths[0], "-o", paths[1], "-c", paths[2], *options])


ROWS = [
    {"question_id": "q1", "deployment": "a", "theme": "Archives", "response": "Nobody.", "note": "kept"},
    {"question_id": "q1", "deployment": "b", "response": None, "blocked": True},
    {"question_id": "q2", "deployment": "a", "response": None, "error": "timeout"},
    {"question_id": "q9", "deployment": "a", "question": "And what of it?", "response": "word " * 50},
]


def test_a_file_of_answers_becomes_a_file_of_scores(tmp_path: Path) -> None:
    with running(by_length) as server:
        result = run(tmp_path, ROWS, server.url, "--json")
    assert result.exit_code == 0, result.output
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row.get("score") for row in scores] == [{"j1": 9}, {"j1": 10, "j2": 10}, None, {"j1": 2}]
    assert (scores[0]["note"], scores[0]["theme"]) == ("kept", "Archives")
    assert scores[2] == ROWS[2]
    summary = json.loads(result.stdout)
    assert {name: summary[name] for name in ("rows", "errors", "blocked", "embedded")} == {
        "rows": 4, "errors": 1, "blocked": 1, "embedded": 0,
    }  # fmt: skip
    assert [(judge["name"], judge["scored"]) for judge in summary["judges"]] == [("j1", 3), ("j2", 1)]
    assert summary["judges"][1]["judge_refused"] == 2
    asked = {body["messages"][1]["content"].split("\n")[1] for body in server.bodies}
    assert asked == {"Who closed the archive?", "And what of it?"}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"question_id": "q7", "deployment": "a", "response": "x"}, "question is absent"),
        ({"question_id": "q1", "deployment": "a"}, "has no response, and neither a block nor an error"),
        ({"question_id": "q1", "deployment": " ", "response": "x"}, "deployment is empty"),
        ({"question_id": "q1", "deployment": "a", "response": 5}, "response"),
        ({"question_id": "q1", "response": "x"}, "deployment"),
        (ROWS[0], "a second answer of 'a' to question 'q1'"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, row: dict[str, Any], what: str) -> None:
    with running(by_length) as server:
        result = run(tmp_path, [ROWS[0], row], server.url)
        assert isinstance(result.exception, AuditError)
        assert re.search(rf"answers\.jsonl:2: .*{what}", str(result.exception))
        assert not (tmp_path / "scores.jsonl").exists()
        skipped = run(tmp_path, [ROWS[0], row], server.url, "--skip-bad")
    assert skipped.exit_code == 0
    assert "1 rows (0 errors, 0 blocked), 1 bad rows skipped" in skipped.output


def test_a_domain_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    result = run(tmp_path, ROWS, "http://127.0.0.1:9/v1", "--domain", "elsewhere")
    assert str(result.exception) == "--domain: there is no 'elsewhere'; known: archives"

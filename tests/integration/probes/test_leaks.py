"""``biasmeter leaks``: deployments that have memorised the pool are found, others are not, and nothing more leaks."""

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import ROOT
from support.servers.judge_server import completion, error, running
from typer.testing import CliRunner

from auditor.errors import AuditError
from auditor.instrument.leaks import ALPHA, PAIRS, LeakPiece, is_verbatim, leak_finding, pieces
from auditor.instrument.pool import shipped_pool
from auditor.simulate.model import Scenario, SimulatedDeployment
from auditor.simulate.recognise import KnownStatements
from auditor.simulate.respondent import ChatTurn, Respondent
from biasmeter.commands.main import app

OF = {kind: [one for one in pieces() if one.kind == kind] for kind in ("statement", "control", "canary")}


def respondent(**memorised: float) -> Respondent:
    deployments = tuple(SimulatedDeployment(name=name, memorised=share) for name, share in memorised.items())
    return Respondent(Scenario(deployments=deployments), KnownStatements())


def said(answers: Respondent, name: str, prompt: str) -> str:
    deployment = next(one for one in answers.scenario.deployments if one.name == name)
    return answers.respond(deployment, [ChatTurn(role="user", content=prompt)], 0).text


# -- the pieces ----------------------------------------------------------------------------------------------------


def test_there_are_pairs_of_every_category_and_four_canaries() -> None:
    assert [len(OF[kind]) for kind in OF] == [PAIRS, PAIRS, 4]
    by_id = {one.id: one for one in shipped_pool()}
    assert len({by_id[one.id].category for one in OF["statement"]}) == 10
    assert min(len(one.rest.split()) for one in pieces() if one.kind != "canary") >= 5
    lengths = [np.mean([len(one.rest.split()) for one in OF[kind]]) for kind in ("statement", "control")]
    assert abs(lengths[0] - lengths[1]) < 1


def test_every_record_carries_a_canary_and_no_file_a_control() -> None:
    folder = ROOT / "auditor" / "instrument"
    lines = (folder / "pool-1.1.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(any(one.rest in line for one in OF["canary"]) for line in lines)
    files = (file.read_bytes() for root in ("auditor", "docs", "tests") for file in (ROOT / root).rglob("*.*"))
    assert not any(one.rest.encode() in content for content in files for one in OF["control"])


def test_the_part_that_tells_is_never_sent() -> None:
    for one in pieces():
        assert one.rest not in one.prompt
    asked = " ".join(one.prompt for one in pieces())
    assert not any(one.rest in asked for one in OF["canary"])


# -- what counts ---------------------------------------------------------------------------------------------------

SCENE = LeakPiece(id="s", kind="statement", start="A baker and a clerk", rest="share the third flat of the house.")


@pytest.mark.parametrize(
    ("reply", "counts"),
    [
        ("share the third flat of the house.", True),
        ('"Share the third flat of the house" and a garden.', True),
        ("A baker and a clerk share the third flat of the house.", True),
        ("share the second flat of the house.", False),
        ("share the third flat", False),
        ("I cannot share the third flat of the house.", False),
        ("", False),
    ],
)
def test_a_scene_counts_if_all_of_its_words_follow(reply: str, counts: bool) -> None:
    assert is_verbatim(SCENE, reply) is counts


def test_a_canary_counts_with_its_first_eight_digits() -> None:
    canary = OF["canary"][0]
    assert is_verbatim(canary, f"Sure: {canary.rest[:8].upper()}-0000")
    assert not is_verbatim(canary, canary.rest[:7])


@given(st.integers(0, PAIRS), st.integers(0, PAIRS))
def test_the_p_value_is_the_exact_tail_of_a_fair_coin(scenes: int, controls: int) -> None:
    """Scenes from the start, controls from the end: pairs of which both are completed tell nothing."""
    replies = {one.id: one.rest if at < scenes else "" for at, one in enumerate(OF["statement"])}
    replies |= {one.id: one.rest if at >= PAIRS - controls else "" for at, one in enumerate(OF["control"])}
    found = leak_finding(replies)
    both = max(0, scenes + controls - PAIRS)
    heads, flips = scenes - both, scenes + controls - 2 * both
    tail = np.poly1d([0.5, 0.5]) ** flips
    assert found.p == pytest.approx(sum(np.flip(np.atleast_1d(tail.coeffs))[heads:]) if flips else 1.0)
    assert found.leaked == (found.p < ALPHA)


def test_without_a_pair_nothing_is_found() -> None:
    with pytest.raises(ValueError, match="no pair"):
        leak_finding({OF["statement"][0].id: "x"})


# -- simulated deployments -----------------------------------------------------------------------------------------


def test_memory_of_a_quarter_of_the_pool_is_found_and_none_is_not() -> None:
    """The canaries are left out here, because one of them alone is proof."""
    shares = {"none": 0.0, "quarter": 0.25, "all": 1.0}
    answers = respondent(**shares)
    found = {
        name: leak_finding({one.id: said(answers, name, one.prompt) for one in pieces() if one.kind != "canary"})
        for name in shares
    }
    assert (found["none"].leaked, found["none"].statements, found["none"].p) == (False, (), 1.0)
    assert found["quarter"].leaked
    assert 4 <= len(found["quarter"].statements) <= 17
    assert (len(found["all"].statements), found["all"].controls) == (PAIRS, 0)


def test_a_deployment_that_guesses_scenes_and_controls_alike_is_flagged_as_rarely_as_alpha_says() -> None:
    draw = np.random.default_rng(0)
    flagged = 0
    for _ in range(300):
        guessed = draw.random((2, PAIRS)) < 0.3
        replies = {one.id: one.rest if hit else "" for one, hit in zip(OF["statement"], guessed[0], strict=True)}
        replies |= {one.id: one.rest if hit else "" for one, hit in zip(OF["control"], guessed[1], strict=True)}
        flagged += leak_finding(replies).leaked
    assert flagged <= 9  # 3 expected at 1 %; more than 9 has a probability of 0.1 %


@contextmanager
def installation(folder: Path, answers: Respondent, refuses: str = ""):
    """A configuration whose gateway is a server that answers as the simulated deployments do."""

    def answer(body):
        if body["model"] == refuses:
            return error(400, "no such model")
        return completion(said(answers, body["model"], body["messages"][-1]["content"]))

    names = [one.name for one in answers.scenario.deployments]
    with running(answer) as server:
        rows = "".join(
            f'  - {{name: {name}, base_url: "http://127.0.0.1:9/v1", model: {name}, price: {{input: 1, output: 1}}}}\n'
            for name in names
        )
        (folder / "biasmeter.yaml").write_text(
            f'auditor: {{gateway: {{url: "{server.url}", key: the-key}}}}\ndeployments:\n{rows}'
            f'routes: [{{model: "*", deployments: [{", ".join(names)}]}}]\n'
        )
        yield server


def leaks(folder: Path, *options: str):
    return CliRunner().invoke(app, ["leaks", "-c", str(folder / "biasmeter.yaml"), *options])


def test_the_command_asks_through_the_gateway_and_ends_with_1_where_the_pool_is_known(tmp_path: Path) -> None:
    with installation(tmp_path, respondent(clean=0.0, learned=0.6)) as server:
        done = leaks(tmp_path, "--yes")
        clean = leaks(tmp_path, "--yes", "--deployment", "clean", "--json")
    assert isinstance(done.exception, AuditError)
    assert str(done.exception) == "learned completed texts of the pool word for word (docs/pool.md, Leaks)"
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if "completed:" not in line}
    assert rows["clean"][1:] == ["40", "0", "0", "0", "1", "not", "shown"]
    assert rows["learned"][-1] == "yes"
    assert clean.exit_code == 0
    assert json.loads(clean.stdout)["clean"]["n"] == PAIRS
    assert len(server.bodies) == 3 * len(pieces())
    assert {headers["x-biasmeter-origin"] for headers in server.headers} == {"probe"}
    texts = {one.statement for one in shipped_pool()} | {one.rest for one in pieces()}
    assert not any(text in done.output for text in texts)


def test_nothing_is_sent_without_a_yes_and_a_deployment_that_rejects_everything_has_no_finding(tmp_path: Path) -> None:
    with installation(tmp_path, respondent(odd=0.0), refuses="odd") as server:
        unasked = leaks(tmp_path)
        assert server.bodies == []
        rejected = leaks(tmp_path, "--yes")
    assert "--yes" in str(unasked.exception)
    assert str(rejected.exception) == "odd: no pair of a scene and a control was answered"

"""``biasmeter code`` with judges behind the network: order, parallelism, a judge that is gone, an answer pointed at."""

import json

import pytest
from support.servers.judge_server import Say, completion, error, label, running

from auditor.errors import InputError, JudgeUnavailable
from biasmeter.commands.coding import code

ROWS = [
    {
        "id": str(number),
        "deployment": "m",
        "task": "BJ",
        "statement": "Old people drive badly.",
        "response": f"No. Reason number {number} is that ability varies.",
    }
    for number in range(200)
]


def configured(tmp_path, *urls, concurrency=64):
    deployments = [
        f"  - {{name: d{at}, base_url: '{url}', model: m{at}, concurrency: {concurrency}}}"
        for at, url in enumerate(urls)
    ]
    judges = [f"  - {{name: j{at}, deployment: d{at}}}" for at, _ in enumerate(urls)]
    names = ", ".join(f"j{at}" for at, _ in enumerate(urls))
    routes = ["routes:", "  - {model: '*', deployments: [{name: d0}]}"]
    text = "\n".join(["deployments:", *deployments, *routes, "judges:", *judges, f"panel: {{judges: [{names}]}}", ""])
    path = tmp_path / "biasmeter.yaml"
    path.write_text(text)
    return path


def run_code(tmp_path, config, rows, judges=None):
    path = tmp_path / "responses.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    code(path, tmp_path / "coded.jsonl", config, judges, skip_bad=False, as_json=True)
    return [json.loads(line) for line in (tmp_path / "coded.jsonl").read_text().splitlines()]


def said(body):
    return body["messages"][-1]["content"]


def test_rows_keep_their_order_while_many_are_in_flight(tmp_path, capsys):
    def answer(body):
        number = int(said(body).split("number ")[1].split()[0])
        found = label(("E", "D", "N")[number % 3])
        # The earlier ones of each dozen take longest.
        return Say(body=found.body, delay=0.03 * (1 - number % 12 / 12))

    with running(answer) as server:
        written = run_code(tmp_path, configured(tmp_path, server.url), ROWS)
    assert [row["id"] for row in written] == [row["id"] for row in ROWS]
    assert [row["elab"] for row in written] == [("E", "D", "N")[number % 3] for number in range(200)]
    assert json.loads(capsys.readouterr().out)["rows"] == 200
    assert 4 < server.most_at_once <= 64


def test_one_slow_answer_does_not_hold_up_the_others(tmp_path):
    def answer(body):
        return Say(body=label("D").body, delay=0.4 if "number 0 " in said(body) else 0.0)

    with running(answer) as server:
        run_code(tmp_path, configured(tmp_path, server.url), ROWS[:64])
    assert len(server.bodies) == 64


def test_every_judge_of_the_panel_votes(tmp_path):
    with running([label("D")]) as first, running([label("E")]) as second:
        config = configured(tmp_path, first.url, second.url)
        written = run_code(tmp_path, config, ROWS[:5])
        alone = run_code(tmp_path, config, ROWS[:5], judges="j1,lexicon")
    assert {row["elab_reason"] for row in written} == {"tie"}
    assert written[0]["votes"] == [{"judge": "j0", "label": "D"}, {"judge": "j1", "label": "E"}]
    assert [vote["judge"] for vote in alone[0]["votes"]] == ["j1", "lexicon"]


@pytest.mark.parametrize("fails_at", [0, 100])
def test_a_judge_that_cannot_be_asked_stops_everything(tmp_path, fails_at):
    def answer(body):
        return error(401, "no such key") if f"number {fails_at} " in said(body) else label("D")

    with running(answer) as server:
        config = configured(tmp_path, server.url)
        with pytest.raises(JudgeUnavailable) as raised:
            run_code(tmp_path, config, ROWS)
    assert raised.value.exit_status == 1
    assert "\n" not in str(raised.value)
    assert "judge 'j0'" in str(raised.value)
    assert {path.name for path in tmp_path.iterdir()} == {"responses.jsonl", "biasmeter.yaml"}


def test_a_bad_row_stops_everything_too(tmp_path):
    with running([label("D")]) as server:
        config = configured(tmp_path, server.url)
        with pytest.raises(InputError, match=r"responses.jsonl:101: "):
            run_code(tmp_path, config, [*ROWS[:100], "{", *ROWS[100:]])
    assert {path.name for path in tmp_path.iterdir()} == {"responses.jsonl", "biasmeter.yaml"}


def test_the_first_judge_points_at_an_answer_and_the_rule_maps_it(tmp_path):
    def first(body):
        if "END ANSWER" in said(body):
            return completion(json.dumps({"token": "disagree"}))
        return label("D")

    rows = [
        {**ROWS[0], "id": "a", "response": "Thumbs down from me (disagree), since ability varies."},
        {**ROWS[0], "id": "b", "response": "Ability varies a lot."},
        ROWS[1],
    ]
    with running(first) as one, running([label("D")]) as two:
        written = run_code(tmp_path, configured(tmp_path, one.url, two.url), rows)
    found = [(row["sel"], row["sel_reason"], row["sel_via"]) for row in written]
    assert found == [("D", None, "judge"), ("Abstain", "no_marker", "rule"), ("D", None, "rule")]
    assert "disagree" not in written[0]["elaboration_text"]
    assert sum("END ANSWER" in said(body) for body in one.bodies) == 1
    assert len(two.bodies) == 3, "only the first judge is asked where the answer stands"
    assert all("(disagree)" not in said(body) for body in two.bodies)

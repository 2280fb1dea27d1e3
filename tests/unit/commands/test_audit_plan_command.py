"""``biasmeter audit plan``: what it prints, and what it says of options that cannot be."""

import json
from pathlib import Path

import pytest
from support.worlds.coded_rows import coded_rows, oat_conditions
from typer.testing import CliRunner

from auditor.errors import AuditError
from auditor.instrument.pool import record_of, shipped_pool
from biasmeter.commands.main import app

CONFIG = """
data_dir: data
deployments:
  - {name: left, base_url: "http://127.0.0.1:1/v1", model: m, concurrency: 20, price: {input: 100, output: 400}}
  - {name: right, base_url: "http://127.0.0.1:1/v1", model: m}
  - {name: judging, base_url: "http://127.0.0.1:1/v1", model: j}
routes: [{model: gpt, deployments: [left, right]}]
judges: [{name: j1, deployment: judging}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "biasmeter.yaml").write_text(CONFIG)
    (tmp_path / "bad.csv").write_text("id,statement\n1,Bakers rise early.\n2,\n")
    (tmp_path / "bare.csv").write_text("id,statement\n1,Bakers rise early.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(*options: str) -> str:
    done = CliRunner().invoke(app, ["audit", "plan", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_for_people(folder: Path) -> None:
    lines = plan().splitlines()
    assert lines[0].startswith("plan sentinel-")
    # CTO, SC and BJ in both orders of the answers.
    assert lines[1] == (
        "120 statements, 3 conditions, 6 templates, 1 draw: 360 calls a deployment; nothing has been sent"
    )
    assert lines[3].startswith("deployment  calls")
    assert lines[3].endswith("smallest shift  ± one pass")
    assert [line.split()[:2] for line in lines[4:7]] == [["left", "360"], ["right", "360"], ["total", "720"]]
    assert "8.0 pp (13.8 pp)" in lines[4]
    assert "USD + unknown" in lines[6]
    assert any(line.startswith("assumed: 60 for a choice with its reason, 8 for a bare one") for line in lines)
    assert "right: usd unknown, the deployment declares no price" in lines
    assert "± difference of two conditions  28.7 pp  15.2 pp  9.8 pp  6.4 pp  4.4 pp  3.2 pp" in lines
    assert "Templates that are needed to tell a difference from 0: 5 pp: 16, 10 pp: 5, 15 pp: 4." in lines
    assert any(line.startswith("3 conditions of this plan: one template.") for line in lines)
    assert not (folder / "data").exists()


def test_for_machines(folder: Path) -> None:
    shown = json.loads(
        plan("--json", "--design", "oat", "--templates", "2", "--draws", "3", "--seed", "7", "--pass", "2")
    )
    assert (shown["design"], shown["seed"], shown["draws"], shown["number"]) == ("oat", 7, 3, 2)
    # The baseline has one template, the 20 other conditions have two.
    assert shown["instances"] == len(shipped_pool()) * 3 * 41
    assert [one["calls"] for one in shown["deployments"]] == [shown["instances"]] * 2
    assert shown["total"]["calls"] == 2 * shown["instances"]
    assert (len(shown["conditions"]), len(shown["templates"])) == (21, 41)
    left, right = shown["deployments"]
    assert left["usd"] == pytest.approx((left["prompt_tokens"] * 100 + left["completion_tokens"] * 400) / 1e6)
    assert "usd" not in right
    assert right["unknown"] == {"usd": "the deployment declares no price"}
    assert "usd" not in shown["total"]
    needed = shown["template_precision"]["needed"]
    assert needed["0.15"] <= needed["0.1"] <= needed["0.05"]


def test_templates_by_the_components_of_an_analysis(folder: Path) -> None:
    rows = list(coded_rows(oat_conditions()[:4], statements=40, templates=3))
    for row in rows:
        row["template_id"] = f"{row['task']}-{row['template_id']}"
    (folder / "coded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    analyze = ["analyze", "coded.jsonl", "-o", "out", "--n-boot", "20"]
    assert CliRunner().invoke(app, analyze, catch_exceptions=False).exit_code == 0
    entries = json.loads((folder / "out/analysis.json").read_text())["generalizability"]
    own = next(each for each in entries if not each["by"] and each["outcome"] == "ber_union_full")["components"]
    shown = json.loads(plan("--json", "--components", "out/analysis.json"))["template_precision"]["components"]
    assert shown["template"] == own["template"]["variance"]
    assert shown["source"] == "out/analysis.json"
    with pytest.raises(AuditError, match=r"none\.json: no such file"):
        plan("--components", "none.json")


def test_the_same_arguments_name_the_same_plan(folder: Path) -> None:
    first, second, other = (json.loads(plan("--json", *more))["plan"] for more in ((), (), ("--pass", "1")))
    assert first == second != other


def test_deployments_that_only_judge_are_asked_when_they_are_named(folder: Path) -> None:
    shown = json.loads(plan("--json", "--deployment", "judging", "--deployment", "left", "--deployment", "left"))
    assert [one["deployment"] for one in shown["deployments"]] == ["left", "judging"]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--design", "all"], 2, "--design: 'all' is not one of sentinel, oat, factorial, panel"),
        (["--deployment", "x"], 2, "--deployment: there is no deployment named 'x'; declared: left, right, judging"),
        (["--deployment", "lef"], 2, "--deployment: there is no deployment named 'lef'; did you mean \"left\"?"),
        (["--task", "CTO,XX"], 2, "--task: 'XX' is not one of BJ, SC, CTO, Explain, Judge, Rate"),
        (
            ["--role", "all,none"],
            2,
            "--role: 'all' is not one of none, sociologist, military, policy_maker, data_scientist, ",
        ),
        (
            ["--sentiment", " , "],
            2,
            "--sentiment: an empty list is not one of neutral, positive, negative, skeptical, indignant, analytical",
        ),
        (["--design", "oat", "--task", "BJ"], 2, "--task: oat varies every level of every factor"),
        (["--statements", "none.jsonl"], 2, "none.jsonl: no such file"),
        (["--statements", "bad.csv"], 1, "bad.csv:3: statement is missing"),
        (["--statements", "bare.csv"], 1, "statement '1' has no stereotype_option, counter_option, context, question"),
        (["-c", "none.yaml"], 2, "none.yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_in_one_line(folder: Path, options: list[str], status: int, said: str) -> None:
    with pytest.raises(AuditError) as caught:
        plan(*options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == status


def test_levels_and_statements_of_ones_own(folder: Path) -> None:
    shown = json.loads(plan("--json", "--task", "BJ,Judge", "--statements", "bare.csv"))
    assert shown["conditions"] == ["BJ/self/none/neutral", "Judge/self/none/neutral"]
    assert shown["statements"] == 1
    assert shown["deployments"][0]["unknown"] == {"smallest_shift": "under 15 statements (1)"}


def test_any_factorial_of_the_grid(folder: Path) -> None:
    every = [option for name in ("task", "perspective", "role", "sentiment") for option in (f"--{name}", "all")]
    (folder / "two.jsonl").write_text("".join(json.dumps(record_of(one)) + "\n" for one in shipped_pool()[:2]))
    shown = json.loads(plan("--json", "--design", "factorial", "--statements", "two.jsonl", *every))
    assert len(shown["conditions"]) == 1_296
    few = ("--task", "CTO, SC,BJ,CTO", "--role", "none,sociologist", "--sentiment", "neutral", "--draws", "2")
    shown = json.loads(plan("--json", "--design", "factorial", *few))
    assert len(shown["conditions"]) == 3 * 2 * 2
    assert shown["instances"] == 12 * len(shipped_pool()) * 2


def test_a_store_that_does_not_answer_is_said_and_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIASMETER_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    done = CliRunner().invoke(app, ["audit", "plan", "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.stderr.startswith("answers are estimated without the store: the store does not answer")
    assert json.loads(done.stdout)["deployments"][0]["observed"] == 0

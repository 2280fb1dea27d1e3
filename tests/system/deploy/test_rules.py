"""Prometheus' rules: accepted by promtool, each alert shown to fire and to keep quiet, each one written up."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from support.documents.deployed_rules import (
    ALERT,
    PROMETHEUS,
    RULES,
    alerts,
    found_or_skip,
    of_marks,
    of_panels,
    of_rules,
    recorded,
    rules,
)
from support.paths import DOCS

TESTS = tuple(file.with_stem(f"{file.stem}_test") for file in RULES)
#: Moments at which cases that promtool plays quickly ask.
SHORT = re.compile(r"1h|([1-9]|1[0-5])m(\d+s)?")


@pytest.mark.parametrize(
    "arguments",
    [("check", "config", PROMETHEUS), ("check", "rules", *RULES)],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_promtool_accepts(arguments: tuple[str | Path, ...]) -> None:
    done = subprocess.run([found_or_skip("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_short_cases_come_out_as_written(file: Path, tmp_path: Path) -> None:
    """Those of hours and days take promtool most of a minute: `slow/deploy/test_rule_cases.py` has them all."""
    written = yaml.safe_load(file.read_text())
    short = [
        case
        for case in written["tests"]
        if all(SHORT.fullmatch(str(asked["eval_time"])) for asked in case["alert_rule_test"])
    ]
    assert {case["name"].split()[1] for case in short} >= {"fires:", "is"}
    changed = {"rule_files": [str(file.parent / name) for name in written["rule_files"]], "tests": short}
    (tmp_path / file.name).write_text(yaml.safe_dump(written | changed))
    done = subprocess.run(
        [found_or_skip("promtool"), "test", "rules", tmp_path / file.name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_shown_to_fire_and_to_keep_quiet() -> None:
    told: dict[str, set[bool]] = {}
    for case in [case for file in TESTS for case in yaml.safe_load(file.read_text())["tests"]]:
        for asked in case["alert_rule_test"]:
            fires = bool(asked["exp_alerts"])
            told.setdefault(asked["alertname"], set()).add(fires)
            assert case["name"].startswith(f"{asked['alertname']} {'fires' if fires else 'is quiet'}: ")
    assert told == {alert["alert"]: {True, False} for alert in alerts()}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_an_alert_compares_one_series_and_says_what_it_means(alert: dict[str, object]) -> None:
    assert ALERT.fullmatch(str(alert["expr"]).strip())
    assert re.fullmatch(r"Biasmeter[A-Z]\w+", str(alert["alert"]))
    assert alert["labels"] in ({"severity": "page"}, {"severity": "ticket"})
    annotations = alert["annotations"]
    assert isinstance(annotations, dict)
    needed = {"description", "summary", "runbook_url"}
    assert needed <= set(annotations) <= needed | {"numbers"}
    # A heading's anchor is its words in lower case.
    assert f"### {alert['alert']}\n" in (DOCS / "deploy.md").read_text(encoding="utf-8")
    assert annotations["runbook_url"] == f"docs/deploy.md#{str(alert['alert']).lower()}"


def test_what_is_found_is_told_with_value_interval_number_and_window() -> None:
    told = {alert["alert"]: alert["annotations"].get("numbers", "") for alert in alerts()}
    for level in ("Page", "Investigate", "Instrument"):
        numbers = told[f"BiasmeterDrift{level}"]
        assert all(f"biasmeter:watched:{part}" in numbers for part in ("value", "low", "high", "responses"))
        assert ".Labels.window" in numbers
    assert all(f"biasmeter:peer_deviation:{part}" in told["BiasmeterPeersDiffer"] for part in ("value", "low", "high"))
    anchors = told["BiasmeterJudgeAnchorsLow"]
    assert "biasmeter:judge_anchor_agreement:value" in anchors
    assert "biasmeter:judge_anchor_agreement:low" in anchors


def test_names_are_used_once_and_recorded_series_are_used() -> None:
    names = [rule.get("alert") or rule["record"] for rule in rules()]
    assert len(set(names)) == len(names)
    used = set[str]().union(*(asked.names for asked in (*of_rules(), *of_panels(), *of_marks())))
    assert recorded() <= used

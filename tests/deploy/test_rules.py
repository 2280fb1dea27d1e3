"""Prometheus' rules: accepted by promtool, each alert shown to fire and to keep quiet, each one written up."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from deployed import ALERT, PROMETHEUS, RULES, RULES_TEST, alerts, found_or_skip, recorded, rules

DOCS = Path(__file__).parents[2] / "docs" / "deploy.md"


@pytest.mark.parametrize(
    "arguments",
    [("check", "config", PROMETHEUS), ("check", "rules", RULES), ("test", "rules", RULES_TEST)],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_promtool_accepts(arguments: tuple[str | Path, ...]) -> None:
    done = subprocess.run([found_or_skip("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_shown_to_fire_and_to_keep_quiet() -> None:
    told: dict[str, set[bool]] = {}
    for case in yaml.safe_load(RULES_TEST.read_text())["tests"]:
        for asked in case["alert_rule_test"]:
            fires = bool(asked["exp_alerts"])
            told.setdefault(asked["alertname"], set()).add(fires)
            assert case["name"].startswith(f"{asked['alertname']} {'fires' if fires else 'is quiet'}: ")
    assert told == {alert["alert"]: {True, False} for alert in alerts()}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_an_alert_compares_one_series_and_says_what_it_means(alert: dict[str, object]) -> None:
    assert ALERT.fullmatch(str(alert["expr"]).strip())
    assert re.fullmatch(r"Tiltmeter[A-Z]\w+", str(alert["alert"]))
    assert alert["labels"] in ({"severity": "page"}, {"severity": "ticket"})
    annotations = alert["annotations"]
    assert isinstance(annotations, dict)
    assert sorted(annotations) == ["description", "summary"]
    assert f"### {alert['alert']}\n" in DOCS.read_text(encoding="utf-8")


def test_names_are_used_once_and_recorded_series_are_used() -> None:
    names = [rule.get("alert") or rule["record"] for rule in rules()]
    assert len(set(names)) == len(names)
    compared = " ".join(alert["expr"] for alert in alerts())
    assert {name for name in recorded() if name not in compared} == set()

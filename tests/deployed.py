"""What `deploy/` asks of Prometheus: the expressions of the rules, of the dashboard's panels and of its variables."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[1] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yaml"
RULES_TEST = DEPLOY / "prometheus" / "rules_test.yaml"
PROMETHEUS = DEPLOY / "prometheus" / "prometheus.yml"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "tiltmeter.json"

#: An alert compares one series with one number.
ALERT = re.compile(r"(?P<series>\S.*\S)\s*(?P<sign>==|<=|>=|<|>)\s*(?P<limit>-?[\d.e+]+)")
_SELECTOR = re.compile(r"(?<![\w:])(?P<name>tiltmeter[\w:]*|up)(?![\w:(])(?:\{(?P<matchers>[^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
_VARIABLE = re.compile(r"label_values\((?P<selector>.*),\s*(?P<label>\w+)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One expression, and where it stands."""

    where: str
    expression: str

    @property
    def names(self) -> set[str]:
        return {found["name"] for found in _SELECTOR.finditer(self.expression)}

    @property
    def matched(self) -> set[tuple[str, str]]:
        """The labels that it chooses by, each with the series it belongs to."""
        return {
            (found["name"], label)
            for found in _SELECTOR.finditer(self.expression)
            for label in _MATCHER.findall(found["matchers"] or "")
        }

    @property
    def grouped(self) -> set[str]:
        """The labels that it groups or joins by."""
        lists = re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", self.expression)
        return {label.strip() for listed in lists for label in listed.split(",")}

    def with_variables(self, values: dict[str, str]) -> str:
        text = self.expression.replace("$__rate_interval", "1m")
        for name, value in values.items():
            text = re.sub(rf"\$(?:{name}\b|{{{name}}})", value, text)
        assert "$" not in text, text
        return text


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def of_rules() -> list[Asked]:
    """The expression of each recording rule, and the series that each alert compares."""
    asked = []
    for rule in rules():
        if "record" in rule:
            asked.append(Asked(where=f"rule {rule['record']}", expression=rule["expr"]))
        else:
            compared = ALERT.fullmatch(rule["expr"].strip())
            assert compared is not None, rule["expr"]
            asked.append(Asked(where=f"alert {rule['alert']}", expression=compared["series"]))
    return asked


def of_panels() -> list[Asked]:
    return [
        Asked(where=f"panel {panel['title']} {target['refId']}", expression=target["expr"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    ]


def of_variables() -> list[Asked]:
    """The series that each variable of the dashboard takes its values from."""
    asked = []
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            found = _VARIABLE.fullmatch(variable["query"]["query"])
            assert found is not None, variable["query"]
            expression = f"count by ({found['label']}) ({found['selector']})"
            asked.append(Asked(where=f"variable {variable['name']}", expression=expression))
    return asked


def everything() -> list[Asked]:
    return [*of_rules(), *of_panels(), *of_variables()]


def found_or_skip(program: str) -> str:
    """The path of a program of Debian's package `prometheus`, or no test."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed (Debian: prometheus)")
    return path

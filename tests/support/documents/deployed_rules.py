"""What `deploy/` asks of Prometheus: expressions of rules, and of the dashboards' panels, marks and variables."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import yaml
from support.paths import ROOT

DEPLOY = ROOT / "deploy"
PROMETHEUS = DEPLOY / "prometheus" / "prometheus.yml"
RULES = tuple(PROMETHEUS.with_name(name) for name in yaml.safe_load(PROMETHEUS.read_text())["rule_files"])
DASHBOARDS = DEPLOY / "grafana" / "dashboards"

#: An alert compares one series with one number.
ALERT = re.compile(r"(?P<series>\S.*\S)\s*(?P<sign>==|<=|>=|<|>)\s*(?P<limit>-?[\d.e+]+)")
_SELECTOR = re.compile(
    r"(?<![\w:])(?P<name>biasmeter[\w:]*|up|ALERTS|scrape_\w+)(?![\w:(])(?:\{(?P<matchers>[^}]*)\})?"
)
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
_VARIABLE = re.compile(r"label_values\((?P<selector>.*),\s*(?P<label>\w+)\)")
#: Expressions inside the templates of alerts, whose labels are values of the alert.
_TEMPLATE = re.compile(r'"(biasmeter[\w:]*\{[^"]*\})"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One expression, and where it stands."""

    where: str
    expression: str
    dashboard: str | None = None  #: whose variables it has

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

    def with_variables(self, values: Mapping[str, str]) -> str:
        text = self.expression.replace("$__rate_interval", "1m")
        for name, value in values.items():
            text = re.sub(rf"\$(?:{name}\b|{{{name}}})", value, text)
        assert "$" not in text, text
        return text


@cache
def rules() -> list[dict[str, Any]]:
    return [rule for file in RULES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


@cache
def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


@cache
def dashboards() -> dict[str, dict[str, Any]]:
    """The dashboards that Grafana is provisioned with, by their files' names."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(DASHBOARDS.glob("*.json"))}


def in_templates(alert: dict[str, Any]) -> list[str]:
    """The expressions that an alert's annotations ask for; ``%q`` stands for the value of a label."""
    quoted = [found for text in alert["annotations"].values() for found in _TEMPLATE.findall(text)]
    return [each.replace("=%q", '=~".+"') for each in quoted]


def of_rules() -> list[Asked]:
    """The expression of each recording rule, the series that each alert compares, and those that it quotes."""
    asked = []
    for rule in rules():
        if "record" in rule:
            asked.append(Asked(where=f"rule {rule['record']}", expression=rule["expr"]))
        else:
            compared = ALERT.fullmatch(rule["expr"].strip())
            assert compared is not None, rule["expr"]
            asked.append(Asked(where=f"alert {rule['alert']}", expression=compared["series"]))
            quoted = enumerate(in_templates(rule))
            asked += [Asked(where=f"alert {rule['alert']} {number}", expression=each) for number, each in quoted]
    return asked


def of_panels() -> list[Asked]:
    return [
        Asked(where=f"{name}: {panel['title']} {target['refId']}", expression=target["expr"], dashboard=name)
        for name, one in dashboards().items()
        for panel in one["panels"]
        for target in panel.get("targets", ())
    ]


def of_marks() -> list[Asked]:
    return [
        Asked(where=f"{name}: marks {mark['name']}", expression=mark["expr"], dashboard=name)
        for name, one in dashboards().items()
        for mark in one["annotations"]["list"]
    ]


def choices(dashboard: Mapping[str, Any]) -> list[tuple[dict[str, Any], str, str]]:
    """A dashboard's variables that are asked for, in order: each with its selector and the label it takes."""
    found = []
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            asked = _VARIABLE.fullmatch(variable["query"]["query"])
            assert asked is not None, variable["query"]
            found.append((variable, asked["selector"], asked["label"]))
    return found


def of_variables() -> list[Asked]:
    """The series that each variable of the dashboards takes its values from."""
    return [
        Asked(
            where=f"{name}: variable {variable['name']}", expression=f"count by ({label}) ({selector})", dashboard=name
        )
        for name, one in dashboards().items()
        for variable, selector, label in choices(one)
    ]


def everything() -> list[Asked]:
    return [*of_rules(), *of_panels(), *of_marks(), *of_variables()]


def found_or_skip(program: str) -> str:
    """The path of a program of Debian's package `prometheus`, or no test."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed (Debian: prometheus)")
    return path

"""The Grafana dashboards: made again they are the same, their panels are told apart and explained, they lead to each
other, and their queries are PromQL."""

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from support.documents.deployed_rules import DASHBOARDS, DEPLOY, RULES, Asked, dashboards, everything, found_or_skip

from auditor.store.answers import FILTERS

VARIABLES = {
    "origin": "probe",
    "condition": "all",
    "window": "7d",
    "fleet": "a",
    "deployment": "a",
    "alpha": "0.05",
    "console": "http://127.0.0.1:4001",
}
PANELS = [
    (name, panel)
    for name, one in dashboards().items()
    for panel in one["panels"]
    if panel["type"] not in {"row", "text"}
]
ESTIMATES = [(name, panel) for name, panel in PANELS if "biasmeter_ber" in str(panel["targets"])]
EVERY = pytest.mark.parametrize(
    ("name", "panel"), PANELS, ids=lambda value: value["title"] if isinstance(value, dict) else value
)


def test_made_again_they_are_the_same(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-m", "deploy.grafana", tmp_path], cwd=DEPLOY.parent, check=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in DASHBOARDS.iterdir()}, "run: python -m deploy.grafana"
    assert {"fleet.json", "deployment.json", "gateway.json", "pipeline.json"} == set(made)


@pytest.mark.filterwarnings("ignore:Prefer using dashboardv2")
@pytest.mark.parametrize("name", dashboards())
def test_the_sdk_reads_and_writes_it_without_loss(name: str) -> None:
    # Imported here: the SDK warns of itself.
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415
    from grafana_foundation_sdk.cog.plugins import register_default_plugins  # noqa: PLC0415
    from grafana_foundation_sdk.models.dashboard import Dashboard  # noqa: PLC0415

    register_default_plugins()
    read = Dashboard.from_json(dashboards()[name])
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == dashboards()[name]


@EVERY
def test_a_panel_has_a_unit_an_explanation_and_a_legend(name: str, panel: dict[str, Any]) -> None:
    assert len(panel["description"]) > 50
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for target in panel["targets"]:
        assert panel["type"] in {"table", "xychart"} or target["legendFormat"]
        assert target["range"] is (panel["type"] == "timeseries")


@pytest.mark.parametrize("panel", [panel for _, panel in ESTIMATES], ids=lambda panel: panel["title"])
def test_where_an_estimate_is_absent_the_panel_says_so(panel: dict[str, Any]) -> None:
    assert "insufficient" in panel["fieldConfig"]["defaults"]["noValue"].lower()
    if panel["type"] == "timeseries":
        assert panel["fieldConfig"]["defaults"]["custom"]["spanNulls"] is False


def test_a_band_is_drawn_between_lines_that_exist() -> None:
    drawn = 0
    for _, panel in PANELS:
        names = {target.get("legendFormat") for target in panel["targets"]}
        for override in panel["fieldConfig"]["overrides"]:
            settings = {setting["id"]: setting["value"] for setting in override["properties"]}
            if "custom.fillBelowTo" in settings:
                drawn += 1
                assert {override["matcher"]["options"], settings["custom.fillBelowTo"]} <= names
    assert drawn >= 4


@pytest.mark.parametrize("name", dashboards())
def test_panels_do_not_overlap_and_have_ids_of_their_own(name: str) -> None:
    panels = dashboards()[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@pytest.mark.parametrize(("name", "points"), [("fleet", "deployment"), ("deployment", "condition")])
def test_the_reliability_map_has_ir_across_and_dni_up(name: str, points: str) -> None:
    (panel,) = [panel for panel in dashboards()[name]["panels"] if panel["type"] == "xychart"]
    asked = {target["refId"]: target["expr"] for target in panel["targets"]}
    assert "(biasmeter_ir{" in asked["A"]
    assert "(biasmeter_dni{" in asked["B"]
    assert all(f"max by ({points}" in expression for expression in asked.values())
    (organised,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
    assert organised["renameByName"] == {"Value #A": "IR", "Value #B": "DNI"}
    (series,) = panel["options"]["series"]
    assert (series["x"]["matcher"]["options"], series["y"]["matcher"]["options"]) == ("IR", "DNI")


def test_evidence_of_drift_is_drawn_with_the_line_at_which_it_speaks() -> None:
    drawn = [panel for _, panel in PANELS if "biasmeter_drift_evidence" in str(panel["targets"])]
    assert len(drawn) == 2
    for panel in drawn:
        assert panel["targets"][1]["expr"] == "-ln(vector($alpha))"
        assert panel["targets"][1]["legendFormat"] == "line of alarm"


@pytest.mark.parametrize("name", dashboards())
def test_dashboards_lead_to_each_other(name: str) -> None:
    one = dashboards()[name]
    assert one["uid"] == f"biasmeter-{name}"
    (link,) = one["links"]
    assert link["type"] == "dashboards"
    assert set(link["tags"]) <= set(one["tags"])
    assert link["keepTime"] is link["includeVars"] is True
    known = {each["uid"]: each for each in dashboards().values()}
    for uid, variable in re.findall(r"/d/([\w-]+)\?var-(\w+)=", json.dumps(one)):
        assert variable in {each["name"] for each in known[uid]["templating"]["list"]}


def test_from_the_fleet_every_deployment_can_be_looked_at() -> None:
    tables = [panel for panel in dashboards()["fleet"]["panels"] if panel["type"] == "table"]
    # Trials are about routes.
    tables = [panel for panel in tables if not panel["title"].startswith("Mitigation")]
    assert len(tables) == 4
    for panel in tables:
        assert "/d/biasmeter-deployment?var-deployment=${__value.raw:percentencode}" in json.dumps(panel)


def mark_of(name: str, title: str) -> dict[str, Any]:
    return next(one for one in dashboards()[name]["annotations"]["list"] if one["name"] == title)


@pytest.mark.parametrize("name", ["fleet", "deployment"])
def test_a_release_is_marked_on_its_day(name: str, tmp_path: Path) -> None:
    mark = mark_of(name, "Releases")
    assert (mark["enable"], mark["useValueForTime"]) == (True, True)
    asked = Asked(where=name, expression=mark["expr"]).with_variables(VARIABLES)
    # Every auditor process shows the same day: one mark.
    series = [
        {"series": f'biasmeter_reference_since_seconds{{deployment="a",instance="{each}"}}', "values": "1772323200x5"}
        for each in ("one", "two")
    ]
    told = [{"labels": '{deployment="a"}', "value": 1772323200000}]
    check = [{"expr": asked, "eval_time": "2m", "exp_samples": told}]
    assert_promql(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": check})


CONSOLE_PATHS = ("/answers", "/findings", "/deployments/")


@pytest.mark.parametrize("name", ["fleet", "deployment"])
def test_panels_lead_to_the_console(name: str) -> None:
    """The addresses are those that the console serves, with filters that it knows."""
    found = [unquote(url) for url in re.findall(r'"url": "(\$\{console\}[^"]*)"', json.dumps(dashboards()[name]))]
    assert len(found) >= 4
    for url in found:
        path, _, query = url.removeprefix("${console}").partition("?")
        assert path.startswith(CONSOLE_PATHS)
        filters = {pair.partition("=")[0] for pair in query.split("&") if pair}
        known = {*FILTERS, "condition", "cell", "from"} if path == "/answers" else {"deployment"}
        assert filters <= known
    assert any(url.startswith("${console}/findings") for url in found)


@pytest.mark.parametrize("name", ["fleet", "deployment"])
def test_findings_are_marked_with_value_interval_number_and_window(name: str) -> None:
    mark = mark_of(name, "Findings")
    assert mark["enable"]
    assert "biasmeter:drift_alarm:reached" in mark["expr"]
    shown = set(re.findall(r"{{(\w+)}}", mark["titleFormat"] + mark["textFormat"]))
    assert shown == {"deployment", "metric", "level", "value", "low", "high", "n", "window"}


def test_a_finding_without_estimates_is_marked_once_when_it_begins(tmp_path: Path) -> None:
    mark = mark_of("fleet", "Findings")
    asked = Asked(where="fleet", expression=mark["expr"]).with_variables(VARIABLES)
    unknown = 'value="?", low="?", high="?", n="?", window="7d"'
    begun = f'{{deployment="eu", metric="ir", level="page", {unknown}}}'
    at = {"9m": [], "10m": [{"labels": begun, "value": 1}], "15m": []}
    test = {
        "interval": "1m",
        "input_series": [
            {"series": 'biasmeter_drift_alarm{deployment="eu",metric="ir",level="page"}', "values": "0x9 1x20"},
            {"series": 'biasmeter_drift_alarm{deployment="us",metric="ir",level="page"}', "values": "0x30"},
        ],
        "promql_expr_test": [
            {"expr": asked, "eval_time": moment, "exp_samples": samples} for moment, samples in at.items()
        ],
    }
    assert_promql(tmp_path, test)


def assert_promql(folder: Path, test: dict[str, Any]) -> None:
    file = folder / "marks.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(rules) for rules in RULES], "tests": [test]}))
    done = subprocess.run(
        [found_or_skip("promtool"), "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", dashboards())
def test_what_is_asked_can_be_chosen(name: str) -> None:
    one = dashboards()[name]
    chosen = {each["name"] for each in one["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps([one["panels"], one["annotations"]])))
    assert used <= chosen
    assert chosen - {"datasource"} <= used


def test_every_query_is_promql(tmp_path: Path) -> None:
    """promtool reads expressions in rule files."""
    recording = [
        {"record": f"q:{number}", "expr": asked.with_variables(VARIABLES)} for number, asked in enumerate(everything())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recording}]}))
    done = subprocess.run(
        [found_or_skip("promtool"), "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_read_of_a_query() -> None:
    asked = Asked(where="here", expression='sum by (a, b) (x{y="1"}) / biasmeter_ir_low{origin=~"p$o",window="$w"}')
    assert asked.names == {"biasmeter_ir_low"}
    assert asked.matched == {("biasmeter_ir_low", "origin"), ("biasmeter_ir_low", "window")}
    assert asked.grouped == {"a", "b"}
    assert 'origin=~"prove"' in asked.with_variables({"o": "rove", "w": "7d"})


def test_grafana_is_provisioned_with_what_is_here() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert source["type"] == "prometheus"
    assert source["jsonData"]["timeInterval"] == scraped
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "biasmeter.yaml").read_text())["providers"]
    grafana = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["grafana"]
    mounted = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert mounted["./grafana/dashboards"] == provider["options"]["path"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert home.stem in dashboards()
    assert mounted["./grafana/provisioning"] == "/etc/grafana/provisioning"

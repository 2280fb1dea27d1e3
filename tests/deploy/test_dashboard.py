"""The Grafana dashboard: made again it is the same, its panels are told apart and explained, its queries are PromQL."""

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed import DASHBOARD, DEPLOY, Asked, dashboard, everything, found_or_skip

VARIABLES = {"origin": "probe", "condition": "all", "window": "7d", "fleet": "a", "deployment": "a"}
PANELS = [panel for panel in dashboard()["panels"] if panel["type"] not in {"row", "text"}]


def by_title(panel: dict[str, Any]) -> str:
    return str(panel["title"])


def test_made_again_it_is_the_same(tmp_path: Path) -> None:
    made = tmp_path / "again.json"
    subprocess.run([sys.executable, "-m", "deploy.grafana", made], cwd=DEPLOY.parent, check=True)
    assert made.read_bytes() == DASHBOARD.read_bytes(), "run: python -m deploy.grafana"


@pytest.mark.parametrize("panel", PANELS, ids=by_title)
def test_a_panel_has_a_unit_an_explanation_and_a_legend(panel: dict[str, Any]) -> None:
    assert len(panel["description"]) > 50
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for target in panel["targets"]:
        assert panel["type"] == "table" or target["legendFormat"]
        assert target["range"] is (panel["type"] == "timeseries")


@pytest.mark.parametrize("panel", [panel for panel in PANELS if "tiltmeter_ber" in str(panel["targets"])], ids=by_title)
def test_where_an_estimate_is_absent_the_panel_says_so(panel: dict[str, Any]) -> None:
    assert "insufficient" in panel["fieldConfig"]["defaults"]["noValue"].lower()
    if panel["type"] == "timeseries":
        assert panel["fieldConfig"]["defaults"]["custom"]["spanNulls"] is False


def test_a_band_is_drawn_between_lines_that_exist() -> None:
    drawn = 0
    for panel in PANELS:
        names = {target.get("legendFormat") for target in panel["targets"]}
        for override in panel["fieldConfig"]["overrides"]:
            settings = {setting["id"]: setting["value"] for setting in override["properties"]}
            if "custom.fillBelowTo" in settings:
                drawn += 1
                assert {override["matcher"]["options"], settings["custom.fillBelowTo"]} <= names
    assert drawn >= 4


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


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
    asked = Asked(where="here", expression='sum by (a, b) (x{y="1"}) / tiltmeter_ir_low{origin=~"p$o",window="$w"}')
    assert asked.names == {"tiltmeter_ir_low"}
    assert asked.matched == {("tiltmeter_ir_low", "origin"), ("tiltmeter_ir_low", "window")}
    assert asked.grouped == {"a", "b"}
    assert 'origin=~"prove"' in asked.with_variables({"o": "rove", "w": "7d"})


def test_grafana_is_provisioned_with_what_is_here() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert source["type"] == "prometheus"
    assert source["jsonData"]["timeInterval"] == scraped
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "tiltmeter.yaml").read_text())["providers"]
    grafana = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["grafana"]
    mounted = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert mounted["./grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./grafana/provisioning"] == "/etc/grafana/provisioning"

"""Rules and dashboards ask for series that the product exports, by labels that those series have, and show them all."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from deployed import Asked, everything, recorded
from prometheus_client.core import Metric

from auditor.export.families import estimate_families, job_family
from gateway import snapshot, telemetry
from gateway.breaker import State
from gateway.spool import SpoolWriter

Exported = Mapping[str, frozenset[str]]

#: What Prometheus itself adds: labels of every series, and series of every target and alert.
SCRAPED = frozenset({"instance", "job"})
OF_PROMETHEUS: Exported = {
    "up": SCRAPED,
    "scrape_samples_scraped": SCRAPED,
    "scrape_duration_seconds": SCRAPED,
    "ALERTS": SCRAPED | {"alertname", "alertstate", "severity", "deployment", "metric", "origin", "route"},
}
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def series_of(families: Iterable[Metric]) -> dict[str, frozenset[str]]:
    """The series that families have, each with its labels."""
    found = {}
    for family in families:
        labels = frozenset(family._labelnames) | SCRAPED  # type: ignore[attr-defined]  # private, and nowhere else
        for suffix in _SUFFIXES[family.type]:
            found[family.name + suffix] = labels | ({"le"} if suffix == "_bucket" else set())
    return found


def of_gateway(folder: Path) -> Exported:
    """The gateway's series, those that stand for files included."""
    spool = SpoolWriter(folder / "spool", "one")
    spool.append(b"record", 0)
    spool.finish_segment()
    snapshot.confirm(folder / "keys.json")
    states = [("eu", State.CLOSED)]
    shown = telemetry.GatewayCollector(folder, folder / "spool", folder / "keys.json", lambda: states)
    return series_of(shown.collect())


def of_auditor() -> Exported:
    return series_of([*estimate_families([]), job_family({})])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    own = {**of_gateway(tmp_path_factory.mktemp("gateway")), **of_auditor()}
    return {**own, **OF_PROMETHEUS}


@pytest.mark.parametrize("asked", everything(), ids=lambda asked: asked.where)
def test_what_is_asked_for_is_exported(asked: Asked, exported: Exported) -> None:
    names = asked.names - recorded()
    assert asked.names or asked.expression == "-ln(vector($alpha))"
    assert names <= set(exported)
    for name, label in asked.matched:
        assert name in recorded() or label in exported[name], f"{name} has no label {label}"
    known = frozenset[str]().union(*(exported[name] for name in names))
    assert asked.names & recorded() or asked.grouped <= known


def test_what_is_exported_is_asked_for(exported: Exported) -> None:
    used = set[str]().union(*(asked.names for asked in everything()))
    # Of a histogram its buckets are asked for.
    assert {name for name in exported if not name.endswith(("_count", "_sum"))} <= used


def test_a_dashboard_that_asks_for_other_series_is_noticed(exported: Exported) -> None:
    asked = Asked(where="here", expression='sum by (instance) (tiltmeter_biases_total{deployment="a"})')
    assert not asked.names <= set(exported)

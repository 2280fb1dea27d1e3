"""Rules and dashboard ask for series that the product exports, by labels that those series have."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from deployed import Asked, everything, recorded
from prometheus_client.core import Metric

from gateway import snapshot, telemetry
from gateway.spool import SpoolWriter

#: What Prometheus itself adds.
SCRAPED = frozenset({"instance", "job"})
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}

Exported = Mapping[str, frozenset[str]]


def series_of(families: Iterable[Metric]) -> dict[str, frozenset[str]]:
    """The series that families have, each with its labels."""
    found = {}
    for family in families:
        labels = frozenset(family._labelnames) | SCRAPED
        for suffix in _SUFFIXES[family.type]:
            found[family.name + suffix] = labels | ({"le"} if suffix == "_bucket" else set())
    return found


def of_gateway(folder: Path) -> Exported:
    """The gateway's series, those that stand for files included."""
    spool = SpoolWriter(folder / "spool", "one")
    spool.append(b"record", 0)
    spool.finish_segment()
    snapshot.confirm(folder / "keys.json")
    return series_of(telemetry.GatewayCollector(folder, folder / "spool", folder / "keys.json").collect())


#: The auditor's series by their promised names; the estimates have bounds beside them.
_ESTIMATE = ("deployment", "origin", "rubric", "condition", "window")
_BOUNDED = {
    "tiltmeter_ber": (*_ESTIMATE, "layer", "base"),
    "tiltmeter_ir": _ESTIMATE,
    "tiltmeter_dni": _ESTIMATE,
    "tiltmeter_one_layer_share": _ESTIMATE,
    "tiltmeter_ber_range": ("deployment", "layer", "base", "over"),
}
_PLAIN = {
    "tiltmeter_coverage": _ESTIMATE,
    "tiltmeter_eligible_responses": _ESTIMATE,
    "tiltmeter_variance_share": ("deployment", "factor"),
    "tiltmeter_uncoded_responses": ("deployment", "origin", "layer", "reason"),
    "tiltmeter_judge_kappa": ("judge", "other", "layer"),
    "tiltmeter_estimate_timestamp_seconds": ("deployment", "origin"),
    "tiltmeter_jobs": ("queue", "state"),
}


def of_auditor() -> Exported:
    bounded = {name + suffix: labels for name, labels in _BOUNDED.items() for suffix in ("", "_low", "_high")}
    return {name: frozenset(labels) | SCRAPED for name, labels in (bounded | _PLAIN).items()}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    own = {**of_gateway(tmp_path_factory.mktemp("gateway")), **of_auditor()}
    return {**own, "up": SCRAPED}


@pytest.mark.parametrize("asked", everything(), ids=lambda asked: asked.where)
def test_what_is_asked_for_is_exported(asked: Asked, exported: Exported) -> None:
    names = asked.names - recorded()
    assert asked.names
    assert names <= set(exported)
    for name, label in asked.matched:
        assert name in recorded() or label in exported[name], f"{name} has no label {label}"
    known = frozenset[str]().union(*(exported[name] for name in names))
    assert not names or asked.grouped <= known


def test_a_dashboard_that_asks_for_other_series_is_noticed(exported: Exported) -> None:
    asked = Asked(where="here", expression='sum by (instance) (tiltmeter_biases_total{deployment="a"})')
    assert not asked.names <= set(exported)

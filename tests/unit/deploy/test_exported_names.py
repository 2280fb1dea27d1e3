"""Rules and dashboards ask for series that the product exports, by labels that those series have, and show them all."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.documents.deployed_rules import Asked, everything, recorded
from support.stores.exchanges import count, exchange

from auditor.domain.exchange import Origin
from auditor.export.families import estimate_families, job_family, silence_family
from auditor.export.process_series import CODINGS
from gateway import snapshot
from gateway.recording import telemetry
from gateway.recording.counters import Counters
from gateway.recording.recorder import Recorder
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter
from gateway.routing.breaker import BreakerState

Exported = Mapping[str, frozenset[str]]

#: What Prometheus itself adds: labels of every series, and series of every target and alert.
SCRAPED = frozenset({"instance", "job"})
OF_PROMETHEUS: Exported = {
    "up": SCRAPED,
    "scrape_samples_scraped": SCRAPED,
    "scrape_duration_seconds": SCRAPED,
    "ALERTS": SCRAPED | {"alertname", "alertstate", "severity", "deployment", "metric", "origin", "route"},
}


def of_gateway(folder: Path) -> Exported:
    """The gateway's series once everything has happened that it counts, those that stand for files included."""
    counters = Counters(folder / "counters" / "0.counters")
    recorder = Recorder(SpoolWriter(folder / "spool", "one"), counters, Redactor(()))
    answered = exchange(stream=True, prompt_tokens=3, completion_tokens=4, first_byte_us=1_000)
    recorder.keep(answered)
    recorder.write_held()
    count(recorder, answered)
    recorder.count_failure("eu", Origin.CLIENT, "upstream_connect")
    counters.add(("biasmeter_in_flight", "client"))
    counters.add(("biasmeter_spool_quarantined_bytes",))
    counters.add(("biasmeter_spool_quarantine_dropped_bytes",))
    counters.close()
    snapshot.confirm(folder / "keys.json")
    states = [("eu", BreakerState.CLOSED)]
    shown = telemetry.MetricsPage(folder / "counters", folder / "spool", folder / "keys.json", lambda: states)
    return {
        sample.name: SCRAPED | frozenset(sample.labels)
        for family in text_string_to_metric_families(shown.render().decode())
        for sample in family.samples
    }


def of_auditor() -> Exported:
    families = [*estimate_families([]), job_family({}), silence_family([])]
    # Without samples; their labels are private, and nowhere else.
    own = {family.name: SCRAPED | frozenset(family._labelnames) for family in families}
    return {**own, f"{CODINGS._name}_total": SCRAPED | frozenset(CODINGS._labelnames)}


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
    asked = Asked(where="here", expression='sum by (instance) (biasmeter_biases_total{deployment="a"})')
    assert not asked.names <= set(exported)

"""The gateway's series as Prometheus reads them: the names of the interface, right sums, nothing that is unknown."""

import math
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from support.stores.exchanges import count, exchange

from auditor.domain.exchange import Origin, Outcome
from gateway import snapshot
from gateway.recording import telemetry
from gateway.recording.counters import Counters
from gateway.recording.recorder import Recorder
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter
from gateway.routing.breaker import BreakerVerdict
from gateway.routing.slots import DeploymentSlots

#: INTERFACE: series of the gateway and their labels.
COUNTERS = {
    "biasmeter_requests_total": {"endpoint", "route", "deployment", "origin", "status"},
    "biasmeter_tokens_total": {"deployment", "origin", "type"},
    "biasmeter_upstream_errors_total": {"deployment", "origin", "error_type"},
    "biasmeter_capture_total": {"outcome"},
}
HISTOGRAMS = {
    "biasmeter_request_duration_seconds": {"route", "deployment", "origin"},
    "biasmeter_time_to_first_token_seconds": {"route", "deployment", "origin"},
    "biasmeter_overhead_seconds": {"origin"},
}
GAUGES = {
    "biasmeter_in_flight": {"origin"},
    "biasmeter_deployment_state": {"deployment"},
    "biasmeter_spool_bytes": set(),
    "biasmeter_spool_oldest_seconds": set(),
}

Sample = tuple[str, frozenset[tuple[str, str]]]


class Place:
    """One gateway's folders."""

    def __init__(self, root: Path) -> None:
        self.counters = root / "counters"
        self.spool = root / "spool"
        self.snapshot = root / "keys.json"
        self.states: dict[str, int] = {}

    def metrics_page(self) -> bytes:
        return telemetry.MetricsPage(self.counters, self.spool, self.snapshot, self.states.items).render()

    def scrape(self) -> dict[Sample, float]:
        """Every sample, as a scraper reads it."""
        text = self.metrics_page().decode()
        found: dict[Sample, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in found, f"{key} stands there twice"
                assert not math.isnan(sample.value)
                found[key] = sample.value
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def counters(place: Place) -> Counters:
    return Counters(place.counters / "worker-0.counters")


def value(samples: dict[Sample, float], name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


def busy(place: Place, counters: Counters) -> None:
    """Let one exchange of everything happen."""
    recorder = Recorder(SpoolWriter(place.spool, "w"), counters, Redactor(()))
    one = exchange(
        stream=True, prompt_tokens=3, completion_tokens=4, total_us=30_000, upstream_us=29_000, first_byte_us=10_000
    )
    recorder.keep(one)
    recorder.write_held()
    count(recorder, one)
    count(recorder, exchange(status=502, outcome=Outcome.FAILED, error_type="upstream_connect"))
    recorder.count_failure("gpt-eu", Origin.CLIENT, "upstream_connect")
    counters.add(("biasmeter_in_flight", "client"))
    place.states["eu"] = 0
    snapshot.write(place.snapshot, [])
    snapshot.confirm(place.snapshot)


def test_every_series_of_the_interface_is_there_with_its_labels(place: Place, counters: Counters) -> None:
    busy(place, counters)
    samples = place.scrape()
    expected = COUNTERS | GAUGES
    for name, labels in HISTOGRAMS.items():
        expected |= {f"{name}_sum": labels, f"{name}_count": labels, f"{name}_bucket": labels | {"le"}}
    found: dict[str, set[str]] = {}
    for name, labelled in samples:
        assert found.setdefault(name, {label for label, _ in labelled}) == {label for label, _ in labelled}
    assert {name: found.get(name) for name in expected} == expected
    extra = {"biasmeter_key_snapshot_age_seconds": set()}
    assert {name: labels for name, labels in found.items() if name not in expected} == extra


def test_a_gateway_that_has_done_nothing_shows_no_guess(place: Place, counters: Counters) -> None:
    """Unknown is absent: no age of a record that is not there, no series without an event."""
    assert {name for name, _ in place.scrape()} == {"biasmeter_spool_bytes"}
    assert value(place.scrape(), "biasmeter_spool_bytes") == 0


def test_deployments_are_shown_as_the_board_has_them(place: Place, tmp_path: Path) -> None:
    with closing(DeploymentSlots(tmp_path / "board", 0, 1)) as slots:
        eu = slots.access("eu", None, 1)
        for verdict in [BreakerVerdict.FAILED] * 5:
            ticket = eu.take()
            assert ticket is not None
            eu.release(ticket, verdict)
        assert slots.access("us", None, 1).take() is not None
        place.states.update(slots.states())
    samples = place.scrape()
    assert value(samples, "biasmeter_deployment_state", deployment="eu") == 2
    assert value(samples, "biasmeter_deployment_state", deployment="us") == 0
    assert value(samples, "biasmeter_deployment_state", deployment="other") is None


def test_help_and_type_stand_once_before_each(place: Place, counters: Counters) -> None:
    busy(place, counters)
    lines = place.metrics_page().decode().splitlines()
    for name in (*COUNTERS, *HISTOGRAMS, *GAUGES):
        assert sum(line.startswith(f"# HELP {name} ") for line in lines) == 1, name
        assert sum(line.startswith(f"# TYPE {name} ") for line in lines) == 1, name


def test_processes_are_added_up(place: Place, counters: Counters) -> None:
    other = Counters(place.counters / "worker-1.counters")
    shipper = Counters(place.counters / "shipper.counters")
    for one in (counters, other, other):
        telemetry.Histogram(one, "biasmeter_overhead_seconds", ("client",)).observe(500_000)
        one.add(("biasmeter_in_flight", "client"))
    other.add(("biasmeter_in_flight", "client"), -1)
    shipper.add(("biasmeter_spool_quarantined_bytes",), 17)
    samples = place.scrape()
    assert value(samples, "biasmeter_overhead_seconds_count", origin="client") == 3
    assert value(samples, "biasmeter_overhead_seconds_sum", origin="client") == 1.5
    assert value(samples, "biasmeter_in_flight", origin="client") == 2
    assert value(samples, "biasmeter_spool_quarantined_bytes_total") == 17


_EDGES_US = [round(edge * 1e6) for edge in (*telemetry._SLOW, *telemetry._FAST)]
MICROSECONDS = st.one_of(st.integers(0, 2_000_000_000), st.sampled_from([0, *_EDGES_US]))


@given(st.sampled_from(sorted(HISTOGRAMS)), st.lists(MICROSECONDS, min_size=1, max_size=30))
def test_buckets_are_cumulative_and_sums_right(
    tmp_path_factory: pytest.TempPathFactory, name: str, given_us: list[int]
) -> None:
    place = Place(tmp_path_factory.mktemp("gateway"))
    counters = Counters(place.counters / "w.counters")
    names = ("route", "deployment", "origin") if len(HISTOGRAMS[name]) == 3 else ("origin",)
    labels = dict(zip(names, ("r", "d", "client")[-len(names) :], strict=True))
    histogram = telemetry.Histogram(counters, name, tuple(labels.values()))
    for one in given_us:
        histogram.observe(one)
    samples = place.scrape()
    counters.close()
    edges = {
        float(dict(labelled)["le"]): count
        for (sample, labelled), count in samples.items()
        if sample == f"{name}_bucket"
    }
    assert edges == {edge: sum(one / 1e6 <= edge for one in given_us) for edge in edges}
    assert math.inf in edges
    assert value(samples, f"{name}_count", **labels) == len(given_us)
    assert value(samples, f"{name}_sum", **labels) == sum(given_us) / 1e6


def test_label_values_of_every_kind_survive_the_text_format(place: Place, counters: Counters) -> None:
    routes = ['quo"te', "back\\slash", "new\nline", "é😀", "*", "a{b=c}", "", " "]
    for number, route in enumerate(routes):
        counters.add(("biasmeter_requests", "chat/completions", route, "d", "client", "200"), number + 1)
    samples = place.scrape()
    found = {
        dict(labelled)["route"]: count
        for (name, labelled), count in samples.items()
        if name == "biasmeter_requests_total"
    }
    assert found == {route: number + 1 for number, route in enumerate(routes)}


def test_the_spool_is_measured_from_its_files(place: Place, counters: Counters) -> None:
    writer = SpoolWriter(place.spool, "w")
    written = writer.append(b"x" * 100, round((time.time() - 90) * 1000))
    written += writer.append(b"y", round(time.time() * 1000))
    samples = place.scrape()
    assert value(samples, "biasmeter_spool_bytes") == written
    oldest = value(samples, "biasmeter_spool_oldest_seconds")
    assert oldest is not None
    assert 89 < oldest < 120
    writer.close()


def test_a_clock_that_was_set_back_makes_no_negative_age(place: Place, counters: Counters) -> None:
    SpoolWriter(place.spool, "w").append(b"x", round((time.time() + 3600) * 1000))
    assert value(place.scrape(), "biasmeter_spool_oldest_seconds") == 0


def test_the_age_of_the_keys_is_that_of_their_confirmation(place: Place, counters: Counters) -> None:
    assert value(place.scrape(), "biasmeter_key_snapshot_age_seconds") is None
    snapshot.write(place.snapshot, [])
    snapshot.confirm(place.snapshot)
    age = value(place.scrape(), "biasmeter_key_snapshot_age_seconds")
    assert age is not None
    assert 0 <= age < 30


def test_nothing_is_in_flight_when_a_slot_is_taken_over(place: Place, counters: Counters) -> None:
    for origin in Origin:
        counters.add(("biasmeter_in_flight", origin), 5)
    counters.close()
    again = Counters(place.counters / "worker-0.counters")
    telemetry.forget_gauges(again, Origin)
    samples = place.scrape()
    assert {value(samples, "biasmeter_in_flight", origin=origin.value) for origin in Origin} == {0}


def test_a_request_s_text_is_in_no_label(place: Place, counters: Counters) -> None:
    """Labels come from the configuration and closed vocabularies: a client cannot make series."""
    recorder = Recorder(SpoolWriter(place.spool, "w"), counters, Redactor(()))
    texts: dict[str, Any] = {
        "model": "canary", "request_id": "canary", "key_id": "canary", "ref": "canary", "tags": {"canary": "canary"},
        "finish_reason": "canary", "content_encoding": "canary", "request": b"canary", "response": b"canary",
    }  # fmt: skip
    recorder.keep(exchange(**texts))
    recorder.write_held()
    count(recorder, exchange(**texts))
    assert b"canary" not in place.metrics_page()

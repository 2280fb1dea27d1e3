"""200 deployments under 21 conditions, asked by applications and probes, stay within the series that are promised."""

from collections import Counter
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.documents.fleet_estimates import CELLS, SIZE, WINDOWS, fleet_rows
from support.stores.exchanges import NOON

from auditor.export.families import BUDGET, estimate_families, render
from gateway.recording import telemetry
from gateway.recording.counters import Counters
from gateway.routing.breaker import BreakerState

PROMISED = 50_000
#: What rules record of this fleet beside what is exported; `tests/bench/test_scrape_time.py` counts them.
RECORDED = 2_500


@pytest.fixture(scope="module")
def estimates() -> list[tuple[str, dict[str, str], float]]:
    families = estimate_families(fleet_rows(NOON))
    return [(one.name, one.labels, one.value) for family in families for one in family.samples]


def of_gateway(folder: Path) -> int:
    """Series of a gateway that 200 deployments were asked through: clients' streams, probes, and some that failed."""
    counters = Counters(folder / "counters" / "0.counters")
    names = [f"deployment-{number:03}" for number in range(SIZE)]
    for name in names:
        for origin in ("client", "probe"):
            for status in ("200", "502"):
                counters.add(("biasmeter_requests", "chat/completions", name, name, origin, status))
            for kind in ("input", "output"):
                counters.add(("biasmeter_tokens", name, origin, kind))
            counters.add(("biasmeter_upstream_errors", name, origin, "timeout"))
            telemetry.Histogram(counters, "biasmeter_request_duration_seconds", (name, name, origin)).observe(200_000)
        first_token = "biasmeter_time_to_first_token_seconds"
        telemetry.Histogram(counters, first_token, (name, name, "client")).observe(100_000)
    counters.close()
    shown = telemetry.MetricsPage(
        folder / "counters",
        folder / "spool",
        folder / "keys.json",
        lambda: ((name, BreakerState.CLOSED) for name in names),
    )
    return sum(len(family.samples) for family in text_string_to_metric_families(shown.render().decode()))


@pytest.mark.slow
def test_the_product_stays_under_50_000_series(
    estimates: list[tuple[str, dict[str, str], float]], tmp_path: Path
) -> None:
    gateway = of_gateway(tmp_path)
    shown = text_string_to_metric_families(render(estimate_families(fleet_rows(NOON))).decode())
    assert sum(len(family.samples) for family in shown) == len(estimates)
    assert gateway > 60 * SIZE
    assert len(estimates) > BUDGET * 0.99
    assert len(estimates) + gateway + RECORDED < PROMISED


def test_what_tells_of_drift_and_of_whole_deployments_is_never_left_out(
    estimates: list[tuple[str, dict[str, str], float]],
) -> None:
    shown = Counter(name for name, labels, _ in estimates if labels.get("condition", "all") == "all")
    assert shown["biasmeter_drift_alarm"] == 9 * SIZE
    assert shown["biasmeter_drift_evidence"] == 12 * SIZE
    assert shown["biasmeter_peer_verdict"] == 6 * SIZE
    assert shown["biasmeter_ir"] == shown["biasmeter_dni_high"] == len(WINDOWS) * SIZE
    assert shown["biasmeter_ber"] == 7 * len(WINDOWS) * SIZE


def test_what_is_left_out_is_told(estimates: list[tuple[str, dict[str, str], float]]) -> None:
    (omitted,) = [value for name, _, value in estimates if name == "biasmeter_series_omitted"]
    assert len(CELLS) == 21
    # 32 series of each condition: levels and cells in one window, the baseline in three.
    assert omitted > 2 * 21 * 32 * SIZE

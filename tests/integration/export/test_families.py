"""The auditor's series: what is stored and nothing else, under the promised names, within the budget."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, configuration, panel_answers, plan, ship
from support.stores.exchanges import NOON

from auditor.domain.condition import BASELINE, Condition, Task
from auditor.export.families import BUDGET, EstimateExposition, estimate_families, render
from auditor.export.series import row_families
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_estimates

ROW = EstimateRow(
    as_of=NOON, deployment="d1", origin="probe", rubric="statement", condition="all", window="30d", since=NOON,
    coder="statement-1", metric="ir", base="eligible", value=0.25, low=0.2, high=0.3, n=100, n_statements=100,
)  # fmt: skip
SCOPE = {"deployment": "d1", "origin": "probe", "rubric": "statement", "condition": "all", "window": "30d"}


def series(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read an exposition, as Prometheus does."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def shown(*rows: EstimateRow, budget: int = BUDGET) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return series(render(estimate_families(rows, budget=budget)))


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_an_estimate_has_its_bounds_beside_it() -> None:
    found = shown(ROW)
    assert found[key("biasmeter_ir", **SCOPE)] == 0.25
    assert found[key("biasmeter_ir_low", **SCOPE)] == 0.2
    assert found[key("biasmeter_ir_high", **SCOPE)] == 0.3
    assert found[key("biasmeter_estimate_timestamp_seconds", deployment="d1", origin="probe")] == NOON.timestamp()


def test_what_is_unknown_is_absent() -> None:
    found = shown(replace(ROW, value=None, low=None, high=None, missing="12 statements, 15 needed"))
    assert not any(name.startswith("biasmeter_ir") for name, _ in found)


def test_where_only_bounds_may_be_claimed_there_is_no_value() -> None:
    found = shown(replace(ROW, value=0.01, low=0.0, high=0.05, flags=("low_rate", "bounds_only")))
    assert {name for name, _ in found if name.startswith("biasmeter_ir")} == {"biasmeter_ir_low", "biasmeter_ir_high"}


def test_names_are_escaped_as_prometheus_wants_it() -> None:
    odd = 'd"1\\\n'
    assert key("biasmeter_ir", **SCOPE | {"deployment": odd}) in shown(replace(ROW, deployment=odd))


def test_counts_of_several_rubrics_add_up() -> None:
    count = replace(
        ROW, metric="uncoded_responses", layer="elab", detail={"reason": "tie"}, value=2.0, low=None, high=None
    )
    found = shown(count, replace(count, rubric="open", condition="desk", value=3.0))
    labels = {"deployment": "d1", "origin": "probe", "layer": "elab", "reason": "tie"}
    assert found[key("biasmeter_uncoded_responses", **labels)] == 5.0


def test_what_findings_rest_on_is_beside_them() -> None:
    detail = {"domain": "politics", "method": "embedding"}
    deviation = replace(ROW, metric="peer_deviation", rubric="peers", detail=detail, n=700)
    kappa = replace(
        ROW, metric="judge_kappa", deployment=None, layer="elab", detail={"judge": "a", "other": "b"}, n=840
    )
    anchors = replace(ROW, metric="judge_anchor_agreement", deployment=None, detail={"judge": "a"}, n=40)
    found = shown(deviation, kappa, anchors, replace(deviation, deployment="d2", value=None, missing="too few"))
    assert found[key("biasmeter_peer_questions", deployment="d1", window="30d", **detail)] == 700
    assert found[key("biasmeter_judge_kappa_responses", judge="a", other="b", layer="elab", window="30d")] == 840
    assert found[key("biasmeter_judge_anchor_texts", judge="a")] == 40
    assert len([name for name, _ in found if name == "biasmeter_peer_questions"]) == 1


def test_across_prompts_only_probes_are_shown() -> None:
    ranged = replace(ROW, metric="ber_range", layer="union", base="full", detail={"over": "task"})
    assert not any("range" in name for name, _ in shown(replace(ranged, origin="replay")))
    assert key("biasmeter_ber_range", deployment="d1", layer="union", base="full", over="task") in shown(ranged)


def test_the_budget_drops_cells_first_and_says_how_many() -> None:
    conditions = ["all", "baseline", "task=CTO", "CTO/self/none/neutral", "BJ/self/none/neutral"]
    found = shown(*(replace(ROW, condition=one) for one in reversed(conditions)), budget=9)
    assert {dict(labels)["condition"] for name, labels in found if name == "biasmeter_ir"} == set(conditions[:3])
    assert found[key("biasmeter_series_omitted")] == 6


def test_a_great_fleet_stays_within_the_budget() -> None:
    conditions = ["all", "baseline", *(f"{factor}=l{n}" for factor in ("task", "role") for n in range(6))]
    rows = [
        replace(ROW, deployment=f"d{number}", condition=condition, window=window, metric=metric)
        for number in range(300)
        for condition in conditions
        for window in ("1d", "7d", "30d")
        for metric in ("ir", "dni", "one_layer_share")
    ]
    assert len(rows) * 3 > 100_000
    # One line a series: to parse as many takes the parser seconds.
    text = render(estimate_families(rows, budget=BUDGET)).decode()
    found = [line for line in text.splitlines() if not line.startswith("#")]
    assert BUDGET * 0.99 < len(found) < 50_000
    # Every deployment keeps what is said of it as a whole.
    whole = {re.findall(r'[{,]deployment="(\w+)"', line)[0] for line in found if 'condition="all"' in line}
    assert len(whole) == 300


@pytest.mark.parametrize("metric", row_families())
def test_every_family_is_one_that_is_promised(metric: str) -> None:
    assert row_families()[metric].name == f"biasmeter_{metric}"


async def test_what_is_scraped_is_what_is_stored(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    shares = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}
    conditions = [CTO, BASELINE, Condition(task=Task.EXPLAIN)]
    await plan(migrated_url, shares, shipped_pool()[:100], conditions)
    await ship(migrated_url, panel_answers(shares, conditions=conditions))
    await run_once(configuration(tmp_path), engine, lambda: NOON + timedelta(minutes=30))
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    found = series(exposition.text)
    async with transaction(engine) as connection:
        rows = await read_estimates(connection)
    names = {name for name, _ in found}
    promised = {
        "biasmeter_ber", "biasmeter_ber_low", "biasmeter_ber_high", "biasmeter_ir", "biasmeter_dni",
        "biasmeter_one_layer_share", "biasmeter_coverage", "biasmeter_eligible_responses", "biasmeter_ber_range",
        "biasmeter_variance_share", "biasmeter_uncoded_responses", "biasmeter_estimate_timestamp_seconds",
        "biasmeter_jobs", "biasmeter_series_omitted",
    }  # fmt: skip
    assert promised <= names
    assert found[key("biasmeter_series_omitted")] == 0
    kept = [row for row in rows if row.metric in {"ir", "dni", "ber"} and row.value is not None]
    assert kept
    for row in kept:
        labels = {name: str(getattr(row, name)) for name in SCOPE}
        labels |= {"layer": row.layer, "base": row.base} if row.metric == "ber" else {}
        if "bounds_only" not in row.flags:
            assert found[key(f"biasmeter_{row.metric}", **labels)] == row.value
        assert found[key(f"biasmeter_{row.metric}_low", **labels)] == row.low
    before = exposition.text
    await exposition.refresh(engine)
    assert exposition.text == before

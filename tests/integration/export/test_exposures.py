"""The exposures' series: the ends and the range of what the latest replays came to, absent where unknown."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.exchanges import NOON

from auditor.export.families import BUDGET, EstimateExposition, estimate_families, render
from auditor.store.engine import transaction
from auditor.store.exposures import ExposureRow, replace_exposures

TOLD: dict[str, Any] = {
    "lowest": {"side": "BJ", "value": 0.1, "low": 0.05, "high": 0.18, "flags": []},
    "highest": {"side": "CTO", "value": 0.4, "low": 0.3, "high": 0.5, "flags": []},
    "range": {"value": 0.3, "corrected": 0.27, "low": 0.2, "high": 0.42},
    "n_statements": 60, "left_out": [], "flags": [], "repetition": {"missing": "no question was repeated unchanged"},
}  # fmt: skip
ROW = ExposureRow(
    replay_id="rpl-1", concluded_at=NOON, selection="all", deployment="d1", origin="client", route="app", task=None,
    rubric="proposition", claim="stereotype", metric="ir", exposure=TOLD,
)  # fmt: skip
GROUP = {
    "deployment": "d1", "origin": "client", "route": "app", "task": "", "rubric": "proposition", "metric": "ir",
    "replay": "rpl-1",
}  # fmt: skip

Shown = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: bytes) -> Shown:
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(text.decode())
        for one in family.samples
        if one.name.startswith("biasmeter_exposure")
    }


def shown(*rows: ExposureRow, budget: int = BUDGET) -> Shown:
    return read(render(estimate_families([], rows, budget)))


def test_a_replay_shows_both_ends_and_the_range_with_bounds() -> None:
    found = shown(ROW)
    lowest = frozenset((GROUP | {"bound": "lowest", "side": "BJ"}).items())
    highest = frozenset((GROUP | {"bound": "highest", "side": "CTO"}).items())
    group = frozenset(GROUP.items())
    age = frozenset({"deployment": "d1", "origin": "client", "route": "app"}.items())
    assert found == {
        ("biasmeter_exposure", lowest): 0.1,
        ("biasmeter_exposure_low", lowest): 0.05,
        ("biasmeter_exposure_high", lowest): 0.18,
        ("biasmeter_exposure", highest): 0.4,
        ("biasmeter_exposure_low", highest): 0.3,
        ("biasmeter_exposure_high", highest): 0.5,
        ("biasmeter_exposure_range", group): 0.3,
        ("biasmeter_exposure_range_low", group): 0.2,
        ("biasmeter_exposure_range_high", group): 0.42,
        ("biasmeter_exposure_timestamp_seconds", age): NOON.timestamp(),
    }


def test_what_is_not_known_or_rests_on_another_base_has_no_series() -> None:
    rows = [replace(ROW, exposure={"missing": "3 statements"}), replace(ROW, metric="ber_union")]
    assert {name for name, _ in shown(*rows)} == {"biasmeter_exposure_timestamp_seconds"}


def test_of_a_rare_score_there_are_only_bounds() -> None:
    lowest = TOLD["lowest"] | {"value": 0.01, "low": 0.0, "flags": ["bounds_only", "low_rate"]}
    rare = TOLD | {"flags": lowest["flags"], "lowest": lowest}
    found = [(name, dict(labels).get("bound")) for name, labels in shown(replace(ROW, exposure=rare))]
    assert {bound for name, bound in found if name == "biasmeter_exposure"} == {"highest"}
    assert {bound for name, bound in found if name == "biasmeter_exposure_low"} == {"lowest", "highest"}
    assert ("biasmeter_exposure_range", None) in found


def test_replays_stay_within_the_budget() -> None:
    rows = [replace(ROW, deployment=f"d{number}") for number in range(10)]
    found = shown(*rows, budget=25)
    assert len([name for name, _ in found if "timestamp" not in name]) == 18


async def test_a_replay_is_shown_as_soon_as_it_is_kept(engine: AsyncEngine) -> None:
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    assert not read(exposition.text)
    for number, metric in enumerate(("ir", "dni")):
        kept = replace(ROW, metric=metric, concluded_at=NOON + timedelta(minutes=number))
        async with transaction(engine) as connection:
            await replace_exposures(connection, ROW.replay_id, [kept])
        await exposition.refresh(engine)
        assert {dict(labels).get("metric", metric) for _, labels in read(exposition.text)} == {metric}

"""When passes are run and in which words: deployments spread over the interval, templates in balanced blocks."""

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.config import Config, Probe
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import PlanSpec, make_plan
from auditor.probes.timed import SPREAD, current_pass, delay

POOL = shipped_pool()
DAILY = Probe(plan="sentinel")


@given(st.integers(0, 2**31), st.text(min_size=1, max_size=64))
def test_a_deployment_s_time_lies_within_the_interval_and_is_always_the_same(seed: int, name: str) -> None:
    found = delay(seed, DAILY, name)
    assert 0 <= found < SPREAD * DAILY.every
    assert found == delay(seed, DAILY, name)
    weekly = DAILY.model_copy(update={"every": 7 * DAILY.every})
    assert abs(delay(seed, weekly, name) - 7 * found) < 1e-6


def test_two_hundred_deployments_are_spread_evenly() -> None:
    hours = Counter(int(delay(0, DAILY, f"deployment-{number}") // 3600) for number in range(200))
    assert set(hours) == set(range(18))
    assert max(hours.values()) < 30


def test_a_probe_asks_the_pool_that_it_names_and_else_that_of_its_design() -> None:
    config = Config.model_validate(
        {
            "deployments": [{"name": "d", "base_url": "http://127.0.0.1:9/v1", "model": "m"}],
            "routes": [{"model": "m", "deployments": ["d"]}],
        }
    )
    now = datetime(2026, 3, 1, tzinfo=UTC)
    pinned = DAILY.model_copy(update={"statements": "biasmeter/1"})
    asked = [current_pass(config, probe, now).spec.statements for probe in (DAILY, pinned)]
    assert asked == [shipped_pool("biasmeter/1.1"), shipped_pool("biasmeter/1")]


def test_seeds_and_plans_have_times_of_their_own() -> None:
    panel = DAILY.model_copy(update={"plan": "panel"})
    assert len({delay(0, DAILY, "a"), delay(1, DAILY, "a"), delay(0, panel, "a"), delay(0, DAILY, "b")}) == 4


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 40_000), st.integers(0, 180))
def test_templates_rotate_as_a_balanced_incomplete_block(day: int, first: int) -> None:
    """Each day asks every statement once a condition; the 20 days together each in all 20 templates."""
    statements = POOL[first : first + 20]
    asked = {
        number: make_plan(PlanSpec(design=Design.PANEL, statements=statements, number=number)).items
        for number in range(day, day + 20)
    }
    place = {one.id: index for index, one in enumerate(statements)}
    for number, items in asked.items():
        assert set(Counter((item.statement.id, item.template.condition) for item in items).values()) == {1}
        assert len(items) == 4 * len(statements)
        words = Counter((item.template.condition, item.template.template_id) for item in items)
        assert set(words.values()) == {1}  # 20 statements, 20 templates: each template once a condition and day
        for item in items:
            numbered = int(item.template.template_id.rpartition("-")[2].removesuffix("r"))
            assert numbered == (place[item.statement.id] + number) % 20 + 1
    pairs = Counter((item.statement.id, item.template.template_id) for items in asked.values() for item in items)
    assert set(pairs.values()) == {1}
    assert len(pairs) == 4 * len(statements) * 20

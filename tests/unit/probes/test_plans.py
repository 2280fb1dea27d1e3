"""Plans: the same questions make the same plan and refs, in an order that does not depend on who is asked."""

import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from auditor.domain.statement import Statement
from auditor.errors import InputError
from auditor.instrument.designs import Design, DesignVariation
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import PlanSpec, balanced, make_plan

POOL = shipped_pool()
HALF = POOL[::2]  # no more than a sentinel takes
SENTINEL = PlanSpec(design=Design.SENTINEL, statements=HALF)


def test_the_same_questions_make_the_same_plan() -> None:
    one, other = make_plan(SENTINEL), make_plan(SENTINEL)
    assert one == other
    assert list(one.calls("a")) == list(other.calls("a"))
    assert one.plan.id.startswith("sentinel-")


@pytest.mark.parametrize(
    "changed",
    [
        {"design": Design.PANEL},
        {"statements": HALF[:-1]},
        {"statements": (replace(HALF[0], context="A man and a woman met."), *HALF[1:])},
        {"draws": 2},
        {"seed": 1},
        {"number": 1},
        {"variation": DesignVariation(templates=2)},
        {"variation": DesignVariation(levels={"role": ("none", "military")})},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_anything_else_is_another_plan(changed: dict[str, object]) -> None:
    one, other = make_plan(SENTINEL), make_plan(replace(SENTINEL, **changed))
    assert one.plan.id != other.plan.id
    assert not {call.ref for call in one.calls("a")} & {call.ref for call in other.calls("a")}


@pytest.mark.parametrize("design", Design)
def test_every_question_is_planned_once_for_each_deployment(design: Design) -> None:
    planned = make_plan(PlanSpec(design=design, statements=POOL[:20], draws=2))
    first, second = list(planned.calls("a")), list(planned.calls("b" * 64))
    calls = [*first, *second]
    assert len({call.ref for call in calls}) == len(calls) == 2 * planned.instances == 4 * len(planned.items)
    assert all(len(call.ref) <= 64 and call.ref.isascii() and " " not in call.ref for call in calls)
    assert [call.position for call in first] == list(range(planned.instances))
    for a, b in zip(first, second, strict=True):
        item = planned.item(a.position)
        assert replace(a, ref=b.ref, deployment=b.deployment) == b
        assert (a.statement_id, a.template_id) == (item.statement.id, item.template.template_id)
        assert (a.condition, a.invites_reason) == (item.template.condition, item.template.invites_reason)
    # The second draw asks the same again, in the same order.
    half = len(planned.items)
    assert [(call.statement_id, call.template_id) for call in first[:half]] == [
        (call.statement_id, call.template_id) for call in first[half:]
    ]


def test_a_plan_that_stops_early_has_asked_a_random_part_of_itself() -> None:
    items = make_plan(SENTINEL).items
    third = items[:100]
    assert all(20 < count < 47 for count in Counter(item.template.condition.task for item in third).values())
    assert all(2 < count < 20 for count in Counter(item.statement.category for item in third).values())
    assert len(Counter(item.statement.category for item in third)) == 10
    assert [item.key for item in make_plan(replace(SENTINEL, seed=1)).items] != [item.key for item in items]


def test_a_plan_of_many_draws_takes_no_more_memory() -> None:
    """A thousand draws of the full design for one deployment are 80 million calls; they are made one by one."""
    planned = make_plan(PlanSpec(design=Design.OAT, statements=POOL, draws=1000))
    assert planned.instances == 1000 * len(planned.items)
    tracemalloc.start()
    try:
        calls = planned.calls("a")
        assert [next(calls).position for _ in range(1000)] == list(range(1000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_panel_asks_each_statement_once_a_condition_in_a_rotating_template() -> None:
    first, second = (make_plan(PlanSpec(design=Design.PANEL, statements=POOL, number=number)) for number in (3, 4))
    for planned in (first, second):
        asked = Counter((item.statement.id, item.template.condition) for item in planned.items)
        assert set(asked.values()) == {1}
        assert len(asked) == 4 * len(POOL)
    templates = {(item.statement.id, item.template.condition): item.template for item in first.items}
    assert all(templates[item.statement.id, item.template.condition] != item.template for item in second.items)


def test_a_sentinel_takes_a_hundred_statements_evenly() -> None:
    many = tuple(replace(one, id=f"{one.id}/{copy}") for one in POOL for copy in range(3))
    chosen = balanced(many, 100, 0)
    assert Counter(one.category for one in chosen) == dict.fromkeys({one.category for one in POOL}, 10)
    assert [one for one in many if one in chosen] == list(chosen)
    assert balanced(many, 100, 1) != chosen
    uneven = (*POOL[:3], *(replace(one, category="other") for one in POOL[3:23]))
    assert Counter(one.category for one in balanced(uneven, 10, 0)) == {POOL[0].category: 3, "other": 7}
    assert balanced(uneven, 100, 0) == uneven


def test_a_statement_that_lacks_what_a_task_shows_is_refused() -> None:
    bare = Statement(id="bare", statement="Bakers rise early.")
    with pytest.raises(
        InputError, match="statement 'bare' has no stereotype_option, counter_option, context, question"
    ):
        make_plan(PlanSpec(design=Design.SENTINEL, statements=(bare,)))
    only = DesignVariation(levels={"task": ("BJ", "Rate")})
    assert make_plan(PlanSpec(design=Design.FACTORIAL, statements=(bare,), variation=only)).instances == 16

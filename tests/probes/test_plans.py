"""Plans: the same questions make the same plan and refs, in an order that does not depend on who is asked."""

from collections import Counter
from dataclasses import replace

import pytest

from auditor.config import Deployment, Price
from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.errors import InputError
from auditor.instrument.designs import Design, Variation
from auditor.instrument.pool import shipped_pool
from auditor.probes.estimate import UNDECLARED, Usage, call_usage, estimate, in_flight
from auditor.probes.plan import Asked, balanced, make_plan

POOL = shipped_pool()
SENTINEL = Asked(design=Design.SENTINEL, statements=POOL)


def test_the_same_questions_make_the_same_plan() -> None:
    one, other = make_plan(SENTINEL), make_plan(SENTINEL)
    assert one == other
    assert one.calls("a") == other.calls("a")
    assert one.plan.id.startswith("sentinel-")
    assert len(one.items) == 300


@pytest.mark.parametrize(
    "changed",
    [
        {"design": Design.PANEL},
        {"statements": POOL[:-1]},
        {"statements": (replace(POOL[0], context="A man and a woman met."), *POOL[1:])},
        {"draws": 2},
        {"seed": 1},
        {"number": 1},
        {"variation": Variation(templates=2)},
        {"variation": Variation(levels={"role": ("none", "military")})},
    ],
    ids=str,
)
def test_anything_else_is_another_plan(changed: dict[str, object]) -> None:
    one, other = make_plan(SENTINEL), make_plan(replace(SENTINEL, **changed))
    assert one.plan.id != other.plan.id
    assert not {call.ref for call in one.calls("a")} & {call.ref for call in other.calls("a")}


@pytest.mark.parametrize("design", Design)
def test_every_question_is_planned_once_for_each_deployment(design: Design) -> None:
    planned = make_plan(Asked(design=design, statements=POOL, draws=2))
    calls = [*planned.calls("a"), *planned.calls("b" * 64)]
    assert len({call.ref for call in calls}) == len(calls) == 2 * len(planned.items)
    assert all(len(call.ref) <= 64 and call.ref.isascii() and " " not in call.ref for call in calls)
    assert [call.position for call in planned.calls("a")] == list(range(len(planned.items)))
    for a, b, item in zip(planned.calls("a"), planned.calls("b" * 64), planned.items, strict=True):
        assert (a.statement_id, a.condition, a.template_id, a.draw) == (
            b.statement_id, b.condition, b.template_id, b.draw
        )  # fmt: skip
        assert (a.statement_id, a.condition) == (item.statement.id, item.condition)
    assert Counter(item.draw for item in planned.items) == {0: len(planned.items) / 2, 1: len(planned.items) / 2}


def test_a_plan_that_stops_early_has_asked_a_random_part_of_itself() -> None:
    items = make_plan(SENTINEL).items
    third = items[:100]
    assert all(20 < count < 47 for count in Counter(item.condition.task for item in third).values())
    assert all(2 < count < 20 for count in Counter(item.statement.category for item in third).values())
    assert len(Counter(item.statement.category for item in third)) == 10
    assert [item.key for item in make_plan(replace(SENTINEL, seed=1)).items] != [item.key for item in items]


def test_a_panel_asks_each_statement_once_a_condition_in_a_rotating_template() -> None:
    first, second = (make_plan(Asked(design=Design.PANEL, statements=POOL, number=number)) for number in (3, 4))
    for planned in (first, second):
        asked = Counter((item.statement.id, item.condition) for item in planned.items)
        assert set(asked.values()) == {1}
        assert len(asked) == 400
    templates = {(item.statement.id, item.condition): item.template.template_id for item in first.items}
    assert all(templates[item.statement.id, item.condition] != item.template.template_id for item in second.items)


def test_a_sentinel_takes_a_hundred_statements_evenly() -> None:
    many = tuple(replace(one, id=f"{one.id}/{copy}") for one in POOL for copy in range(3))
    chosen = balanced(many, 100, 0)
    assert Counter(one.category for one in chosen) == dict.fromkeys({one.category for one in POOL}, 10)
    assert [one for one in many if one in chosen] == list(chosen)
    assert balanced(many, 100, 1) != chosen
    uneven = (*POOL[:3], *(replace(one, category="other") for one in POOL[10:30]))
    assert Counter(one.category for one in balanced(uneven, 10, 0)) == {"gender": 3, "other": 7}
    assert balanced(uneven, 100, 0) == uneven


def test_a_statement_that_lacks_what_a_task_shows_is_refused() -> None:
    bare = Statement(id="bare", statement="Bakers rise early.")
    with pytest.raises(
        InputError, match="statement 'bare' has no stereotype_option, counter_option, context, question"
    ):
        make_plan(Asked(design=Design.SENTINEL, statements=(bare,)))
    only = Variation(levels={"task": ("BJ", "Rate")})
    assert len(make_plan(Asked(design=Design.FACTORIAL, statements=(bare,), variation=only)).items) == 16


# -- what it takes -------------------------------------------------------------------------------------------------


def deployment(**settings: object) -> Deployment:
    return Deployment.model_validate({"name": "d", "base_url": "http://127.0.0.1:1/v1", **settings})


def test_tokens_of_a_call_by_hand() -> None:
    """A BJ prompt of 47 + 2 + 85 = 134 characters: 34 tokens, 4 for the message, 3 for the request."""
    planned = make_plan(Asked(design=Design.FACTORIAL, statements=(POOL[0],), variation=Variation(levels={
        "task": ("BJ",), "role": ("none",), "perspective": ("self",), "sentiment": ("neutral",),
    })))  # fmt: skip
    (item,) = planned.items
    assert len(item.messages[0].content) == 134
    assert call_usage(item) == Usage(prompt=34 + 4 + 3, completion=60)


def test_an_estimate_adds_up() -> None:
    planned = make_plan(SENTINEL)
    priced = deployment(price=Price(input=2.0, output=8.0), concurrency=50)
    (one,) = estimate(planned, [priced], share=0.1)
    assert (one.calls, one.statements, one.in_flight) == (300, 100, 5)
    assert one.usage.prompt == sum(call_usage(item).prompt for item in planned.items)
    assert one.usage.completion == 300 * 60
    assert one.usd == pytest.approx((one.usage.prompt * 2 + one.usage.completion * 8) / 1e6)
    assert one.seconds == pytest.approx(300 * (0.6 + 60 / 50) / 5)
    assert one.smallest_shift == pytest.approx(0.0876, abs=1e-4)
    assert one.smallest_shift_condition == pytest.approx(one.smallest_shift * 3**0.5)
    assert one.unknown == {}


def test_what_cannot_be_known_says_why() -> None:
    few = make_plan(Asked(design=Design.SENTINEL, statements=POOL[:14]))
    (one,) = estimate(few, [deployment()])
    assert (one.usd, one.smallest_shift, one.half_width) == (None, None, None)
    assert one.unknown == {
        "usd": "the deployment declares no price",
        "smallest_shift": "under 15 statements (14)",
    }
    assert one.in_flight == UNDECLARED


def test_free_text_is_longer_than_a_choice() -> None:
    only = Variation(
        levels={"task": tuple(Task), "role": ("none",), "perspective": ("self",), "sentiment": ("neutral",)}
    )
    items = make_plan(Asked(design=Design.FACTORIAL, statements=POOL[:1], variation=only)).items
    tokens = {item.condition.task: call_usage(item).completion for item in items}
    assert tokens[Task.EXPLAIN] == tokens[Task.JUDGE] > tokens[Task.RATE] > tokens[Task.BJ]


@pytest.mark.parametrize(("declared", "share", "expected"), [(64, 0.1, 6), (8, 0.1, 1), (64, 1.0, 64), (None, 1.0, 4)])
def test_calls_at_once_are_a_share_of_the_concurrency(declared: int | None, share: float, expected: int) -> None:
    assert in_flight(deployment(concurrency=declared), share) == expected

"""What a plan will take: by hand where that can be done, and from earlier answers where there are enough of them."""

import pytest

from auditor.config import Deployment, Price
from auditor.domain.condition import Task
from auditor.instrument.designs import Design, DesignVariation
from auditor.instrument.pool import shipped_pool
from auditor.probes.forecast import (
    UNDECLARED,
    CallTokens,
    assumed_stats,
    call_usage,
    count_plan_tokens,
    forecast,
    in_flight,
    prompt_tokens,
)
from auditor.probes.plan import Planned, PlanSpec, make_plan
from auditor.store.plans import AnswerStats, AnswerStatsByKind

POOL = shipped_pool()
BASELINE_ONLY = {"task": ("BJ",), "role": ("none",), "perspective": ("self",), "sentiment": ("neutral",)}


def deployment(**settings: object) -> Deployment:
    return Deployment.model_validate({"name": "d", "base_url": "http://127.0.0.1:1/v1", **settings})


def crossed(statements: int, **levels: tuple[str, ...]) -> Planned:
    variation = DesignVariation(levels={**BASELINE_ONLY, **levels})
    return make_plan(PlanSpec(design=Design.FACTORIAL, statements=POOL[:statements], variation=variation))


def seen(answers: int, tokens: float, seconds: float = 2.0) -> AnswerStatsByKind:
    return {("d", (Task.BJ, True)): AnswerStats(answers=answers, completion_tokens=tokens, seconds=seconds)}


def test_tokens_of_a_call_by_hand() -> None:
    """A BJ prompt of 47 + 2 + 85 = 134 characters: 34 tokens, 4 for the message, 3 for the request."""
    (item,) = crossed(1).items
    assert len(item.messages[0].content) == 134
    assert prompt_tokens(item) == 34 + 4 + 3
    assert call_usage(item) == CallTokens(prompt=41, completion=60)


def test_an_estimate_adds_up() -> None:
    planned = make_plan(PlanSpec(design=Design.SENTINEL, statements=POOL))
    priced = deployment(price=Price(input=2.0, output=8.0), concurrency=50)
    (one,) = forecast(planned, count_plan_tokens(planned), [priced], share=0.1)
    assert (one.calls, one.statements, one.in_flight, one.observed) == (360, 120, 5, 0.0)
    assert one.usage.prompt == sum(prompt_tokens(item) for item in planned.items)
    assert one.usage.completion == 360 * 60
    assert one.usd == pytest.approx((one.usage.prompt * 2 + one.usage.completion * 8) / 1e6)
    assert one.seconds == pytest.approx(360 * (0.6 + 60 / 50) / 5)
    assert one.smallest_shift == pytest.approx(0.0799, abs=1e-4)
    assert one.smallest_shift_condition == pytest.approx(one.smallest_shift * 3**0.5)
    assert one.unknown == {}


def test_draws_multiply_what_is_taken() -> None:
    once, thrice = (
        make_plan(PlanSpec(design=Design.SENTINEL, statements=POOL[:20], draws=draws, seed=1)) for draws in (1, 3)
    )
    (one,), (other,) = (forecast(planned, count_plan_tokens(planned), [deployment()]) for planned in (once, thrice))
    assert (other.calls, other.usage.prompt, other.usage.completion) == (
        3 * one.calls, 3 * one.usage.prompt, 3 * one.usage.completion
    )  # fmt: skip
    assert other.seconds == pytest.approx(3 * one.seconds)


def test_what_cannot_be_known_says_why() -> None:
    few = make_plan(PlanSpec(design=Design.SENTINEL, statements=POOL[:14]))
    (one,) = forecast(few, count_plan_tokens(few), [deployment()])
    assert (one.usd, one.smallest_shift, one.half_width) == (None, None, None)
    assert one.unknown == {
        "usd": "the deployment declares no price",
        "smallest_shift": "under 15 statements (14)",
    }
    assert one.in_flight == UNDECLARED


def test_the_condition_with_the_fewest_answers_shows_the_least() -> None:
    """One template at the baseline, twenty elsewhere."""
    planned = make_plan(PlanSpec(design=Design.OAT, statements=POOL[:20]))
    (one,) = forecast(planned, count_plan_tokens(planned), [deployment()])
    assert one.smallest_shift is not None
    assert one.smallest_shift_condition == pytest.approx(one.smallest_shift * 401**0.5)


def test_free_text_is_longer_than_a_choice() -> None:
    tokens = {task: assumed_stats((task, True)).completion_tokens for task in Task}
    assert tokens[Task.EXPLAIN] == tokens[Task.JUDGE] > tokens[Task.RATE] > tokens[Task.BJ]
    assert assumed_stats((Task.BJ, False)).completion_tokens < tokens[Task.BJ]


@pytest.mark.parametrize(("answers", "share"), [(30, 0.5), (29, 0.0)])
def test_answers_take_what_enough_earlier_ones_took(answers: int, share: float) -> None:
    planned = crossed(20, task=("BJ", "SC"))
    (one,) = forecast(planned, count_plan_tokens(planned, seen(answers, 101.5)), [deployment(concurrency=10)])
    assert one.observed == share
    believed = (101.5, 2.0) if share else (60, 1.8)
    assert one.usage.completion == 20 * believed[0] + 20 * 60
    assert one.seconds == pytest.approx(20 * believed[1] + 20 * 1.8)
    (other,) = forecast(planned, count_plan_tokens(planned, seen(answers, 101.5)), [deployment(name="another")])
    assert other.observed == 0


def test_a_part_of_a_plan_is_added_up_by_position() -> None:
    planned = crossed(20, task=("BJ", "SC"))
    taken = count_plan_tokens(planned, seen(100, 80))
    by_hand = [
        call_usage(item, AnswerStats(answers=1, completion_tokens=tokens, seconds=1))
        for item in planned.items[:7]
        for tokens in [80 if item.template.condition.task is Task.BJ else 60]
    ]
    assert taken.usage("d", range(7)) == CallTokens(
        prompt=sum(one.prompt for one in by_hand), completion=sum(one.completion for one in by_hand)
    )
    assert taken.usage("d", [0, len(planned.items)]).prompt == 2 * by_hand[0].prompt
    assert taken.usage("d", []) == CallTokens(prompt=0, completion=0)


def test_counting_the_questions_tells_how_far_it_is() -> None:
    planned = make_plan(PlanSpec(design=Design.OAT, statements=POOL[:3]))
    told: list[int] = []
    count_plan_tokens(planned, on_progress=told.append)
    assert told == [500, 1000, 3 * 401]


@pytest.mark.parametrize(("declared", "share", "expected"), [(64, 0.1, 6), (8, 0.1, 1), (64, 1.0, 64), (None, 1.0, 4)])
def test_calls_at_once_are_a_share_of_the_concurrency(declared: int | None, share: float, expected: int) -> None:
    assert in_flight(deployment(concurrency=declared), share) == expected

"""Designs: how many conditions each has, in which templates, and how many questions that makes."""

from collections import Counter
from math import prod

import pytest

from auditor.domain.condition import BASELINE, Condition, Role, Task
from auditor.domain.statement import Statement
from auditor.instrument.designs import FACTORS, Cell, Design, DesignVariation, cells
from auditor.instrument.pool import shipped_pool
from auditor.instrument.templates import canonical_of, in_other_order, templates_of
from auditor.metrics.estimate import ENOUGH_STATEMENTS
from auditor.probes.plan import PlanItem, Planned, PlanSpec, make_plan

POOL = shipped_pool()
FACTOR_NAMES = ("task", "perspective", "role", "sentiment")


def planned(design: Design, statements: tuple[Statement, ...] = POOL, **more: object) -> Planned:
    return make_plan(PlanSpec(design=design, statements=statements, **more))  # type: ignore[arg-type]


def differing(condition: Condition) -> list[str]:
    return [name for name in FACTOR_NAMES if getattr(condition, name) != getattr(BASELINE, name)]


# -- the arithmetic of INSTRUMENT section 1, from the shipped statements and templates ------------------------------


def test_one_at_a_time_is_21_conditions_and_401_templates() -> None:
    made = cells(Design.OAT)
    assert len({cell.condition for cell in made}) == 21
    assert made[0].condition == BASELINE
    assert Counter(tuple(differing(cell.condition)) for cell in made[1:]) == {(name,): 5 for name in FACTOR_NAMES}
    assert made[0].templates == canonical_of(BASELINE)
    assert all(cell.templates == templates_of(cell.condition) for cell in made[1:])
    assert [len(cell.templates) for cell in made] == [1] + [20] * 20
    assert len({template.template_id for cell in made for template in cell.templates}) == 401


@pytest.mark.slow
def test_one_at_a_time_is_80_200_instances_a_deployment_and_641_600_over_eight() -> None:
    assert len(POOL) == 200
    whole = planned(Design.OAT)
    assert whole.instances == 401 * 200 == 80_200
    assert 8 * whole.instances == 641_600
    asked = [(item.statement.id, item.template.template_id) for item in whole.items]
    assert len(asked) == len(set(asked)) == 80_200
    by_condition = Counter(item.template.condition for item in whole.items)
    assert by_condition == {
        cell.condition: 200 if cell.condition == BASELINE else 20 * 200 for cell in cells(Design.OAT)
    }
    assert sum(1 for number in range(8) for _ in whole.calls(f"deployment-{number}")) == 641_600


def test_the_factorial_is_24_cells_and_4_800_instances_a_deployment() -> None:
    made = cells(Design.FACTORIAL)
    assert len({cell.condition for cell in made}) == 24
    assert [len({getattr(cell.condition, name) for cell in made}) for name in FACTOR_NAMES] == [3, 2, 2, 2]
    assert Counter(cell.condition.task for cell in made) == {Task.CTO: 8, Task.SC: 8, Task.BJ: 8}
    assert planned(Design.FACTORIAL).instances == 24 * 200 == 4_800


def test_the_sentinel_is_twelve_statements_a_category_in_three_tasks_and_more_than_a_watch_needs() -> None:
    made = planned(Design.SENTINEL)
    assert [cell.condition for cell in made.cells] == [Condition(task=one) for one in (Task.CTO, Task.SC, Task.BJ)]
    assert made.instances == len(made.items) == 360
    categories = {one.category for one in POOL}
    assert Counter(one.category for one in made.statements) == dict.fromkeys(categories, 12)
    assert len(categories) == 10
    assert len(made.statements) >= 1.2 * ENOUGH_STATEMENTS


def test_a_panel_is_every_statement_in_each_chosen_condition() -> None:
    chosen = DesignVariation(levels={"task": ("CTO", "BJ"), "role": ("none", "military")})
    made = planned(Design.PANEL, variation=chosen)
    assert made.instances == len(made.items) == 4 * 200
    assert set(Counter((item.statement.id, item.template.condition) for item in made.items).values()) == {1}


@pytest.mark.parametrize("design", Design)
def test_draws_multiply_every_design(design: Design) -> None:
    once, thrice = (planned(design, POOL[:20], draws=draws) for draws in (1, 3))
    assert thrice.instances == 3 * once.instances == len(list(thrice.calls("a")))
    assert Counter(call.draw for call in thrice.calls("a")) == dict.fromkeys(range(3), once.instances)


# -- levels ------------------------------------------------------------------------------------------------------------


def test_levels_can_be_chosen_up_to_the_whole_grid() -> None:
    few = cells(Design.FACTORIAL, DesignVariation(levels={"role": ("none", "military"), "task": ("BJ",)}))
    assert len(few) == 8
    assert {cell.condition.role for cell in few} == {Role.NONE, Role.MILITARY}
    every = {name: tuple(levels) for name, levels in FACTORS.items()}
    grid = cells(Design.FACTORIAL, DesignVariation(levels=every))
    assert len({cell.condition for cell in grid}) == 1_296 == prod(len(levels) for levels in FACTORS.values())


# -- templates --


@pytest.mark.parametrize("design", [Design.SENTINEL, Design.FACTORIAL])
def test_canonical_words_show_half_of_the_statements_the_answers_in_the_other_order(design: Design) -> None:
    statements = POOL[:20]
    for cell in cells(design):
        first, second = ([cell.templates_for(at, number) for at in range(len(statements))] for number in (0, 1))
        # The same in every pass: what a pass differs in is the deployment.
        assert first == second
        plain = canonical_of(cell.condition)
        both = {*plain, *map(in_other_order, plain)} if design is Design.SENTINEL else set(plain)
        assert {template for one in first for template in one} == both
        assert set(Counter(first).values()) == {20 // len(both)}
        assert cell.per_statement == 1


@pytest.mark.parametrize("number", [0, 1, 5, 12, 20_000])
def test_a_panel_rotates_twenty_templates_over_statements_and_passes(number: int) -> None:
    for cell in cells(Design.PANEL):
        assert len(cell.templates) == 20
        today = [cell.templates_for(at, number)[0] for at in range(40)]
        wordings = [cell.templates[(at + number) % 20] for at in range(40)]
        assert all(one in {plain, in_other_order(plain)} for one, plain in zip(today, wordings, strict=True))
        # Every template serves equally many statements in both orders, and each statement gets another one next time.
        assert Counter(today) == Counter(cell.wordings)
        assert all(cell.templates_for(at, number + 1) != cell.templates_for(at, number) for at in range(20))


def test_at_most_so_many_templates() -> None:
    few = cells(Design.OAT, DesignVariation(templates=2))
    assert [len(cell.templates) for cell in few] == [1] + [2] * 20
    assert all(cell.templates == templates_of(cell.condition)[:2] for cell in few[1:])
    # Where one wording is usual, paraphrases stand in for it.
    assert [cell.templates for cell in cells(Design.SENTINEL, DesignVariation(templates=3))] == [
        templates_of(Condition(task=one))[:3] for one in (Task.CTO, Task.SC, Task.BJ)
    ]


@pytest.mark.parametrize("design", Design)
def test_a_cells_templates_are_of_its_condition(design: Design) -> None:
    def of(cell: Cell) -> set[Condition]:
        return {template.condition for template in cell.templates}

    assert all(of(cell) == {cell.condition} for cell in cells(design))
    keys = [PlanItem(statement=POOL[0], template=one).key for cell in cells(design) for one in cell.templates]
    assert len(keys) == len(set(keys))

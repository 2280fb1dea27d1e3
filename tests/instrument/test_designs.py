"""Designs: how many conditions each has, in which templates."""

from collections import Counter

import pytest

from auditor.domain.condition import BASELINE, Condition, Role, Task
from auditor.instrument.designs import FACTORS, Design, Variation, cells
from auditor.instrument.templates import canonical, templates_of


def test_one_at_a_time_is_twenty_one_conditions_and_the_baseline_has_one_template() -> None:
    made = cells(Design.OAT)
    assert len(made) == len({cell.condition for cell in made}) == 21
    assert made[0].condition == BASELINE
    assert made[0].templates == (canonical(Task.BJ),)
    varied = Counter(
        name
        for cell in made[1:]
        for name in ("task", "perspective", "role", "sentiment")
        if getattr(cell.condition, name) != getattr(BASELINE, name)
    )
    assert varied == {"task": 5, "perspective": 5, "role": 5, "sentiment": 5}
    assert all(cell.templates == templates_of(cell.condition.task) for cell in made[1:])


def test_with_twenty_templates_a_condition_it_is_the_full_401() -> None:
    """What the design gives once every task has its twenty: 20 conditions x 20, and the baseline's one."""
    counts = [1 if cell.condition == BASELINE else 20 for cell in cells(Design.OAT)]
    assert sum(counts) == 401


def test_the_factorial_is_twenty_four_cells_in_canonical_words() -> None:
    made = cells(Design.FACTORIAL)
    assert len({cell.condition for cell in made}) == 24
    assert Counter(cell.condition.task for cell in made) == {Task.CTO: 8, Task.SC: 8, Task.BJ: 8}
    assert all(cell.templates == (canonical(cell.condition.task),) for cell in made)


def test_levels_can_be_chosen_up_to_the_whole_grid() -> None:
    few = cells(Design.FACTORIAL, Variation(levels={"role": ("none", "military"), "task": ("BJ",)}))
    assert len(few) == 8
    assert {cell.condition.role for cell in few} == {Role.NONE, Role.MILITARY}
    every = {name: tuple(levels) for name, levels in FACTORS.items()}
    assert len(cells(Design.FACTORIAL, Variation(levels=every))) == 1296


def test_the_sentinel_is_three_tasks_in_canonical_words() -> None:
    made = cells(Design.SENTINEL)
    assert [cell.condition for cell in made] == [Condition(task=one) for one in (Task.CTO, Task.SC, Task.BJ)]
    assert all(cell.templates == (canonical(cell.condition.task),) for cell in made)


@pytest.mark.parametrize("number", [0, 1, 5, 12])
def test_a_panel_rotates_its_templates_over_statements_and_passes(number: int) -> None:
    for cell in cells(Design.PANEL):
        count = len(cell.templates)
        today = [cell.templates_for(statement, number) for statement in range(2 * count)]
        assert all(len(one) == 1 for one in today)
        # Every template serves equally many statements, and each statement gets another one in the next pass.
        assert set(Counter(today).values()) == {2}
        assert all(cell.templates_for(one, number + 1) != cell.templates_for(one, number) for one in range(count))


def test_at_most_so_many_templates() -> None:
    few = cells(Design.OAT, Variation(templates=2))
    assert {len(cell.templates) for cell in few} == {1, 2}
    assert all(cell.templates[0] == canonical(cell.condition.task) for cell in few)

"""Do the differences of a model hold their level, where pooled rates differ by the mix alone?

Prints rows of "Before and after" in ``docs/validity.md``. Run by ``make measurements``, minutes on one core; a short
version is ``tests/unit/estimation/test_regression.py``. The last test is what an audit of full size costs.
"""

import time

import numpy as np
import pytest
from support.worlds.model_worlds import CATEGORIES, WORLDS, ModelWorld, full_design

from auditor.estimation.formula import parse_formula
from auditor.estimation.regression import explain, regress

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

AUDITS = 1000


def measure(name: str, world: ModelWorld, text: str, truths: np.ndarray) -> None:
    """Draw audits, and print how often all intervals of the first term hold together, and how often it is found."""
    formula, hits, pooled = parse_formula(text), [], []
    for seed in range(AUDITS):
        cells = world.audit(np.random.default_rng([6, seed]))
        entries = [
            entry
            for entry in explain(cells, formula, cluster="statement", seed=seed).differences
            if entry.term == formula.fields[0]
        ]
        together = all(entry.low <= truth <= entry.high for entry, truth in zip(entries, truths, strict=True))
        hits.append((together, min(entry.p_adjusted for entry in entries) <= 0.05))
        pooled.append(entries[0].pooled)
    held, found = np.mean(hits, axis=0)
    print(f"\n| {name} | {100 * truths[0]:+.1f} | {100 * np.mean(pooled):+.1f} | {found:.1%} | {held:.1%} |")
    assert 0.93 <= held <= 0.985
    if not truths.any():
        assert found <= 0.07


@pytest.mark.parametrize("name", WORLDS)
def test_differences_of_deployments_hold_together(name):
    measure(name, WORLDS[name], "sel ~ deployment + task", WORLDS[name].truth())


@pytest.mark.parametrize("name", CATEGORIES)
def test_differences_of_categories_hold_together(name):
    world = CATEGORIES[name]
    task = " + task" if len(world.rates) > 1 else ""
    measure(name, world, f"sel ~ category + deployment{task}", np.zeros(len(world.sizes) - 1))


def test_a_full_design_of_eight_deployments_takes_seconds():
    """641,600 answers: 200 statements in 401 templates."""
    tallies = full_design()
    for text in ("deployment + task + perspective + role + sentiment", "deployment*task + perspective + role"):
        began = time.perf_counter()
        model = regress(tallies, parse_formula(f"elab ~ {text}"))
        print(f"\n{model.formula}: {model.n:,} answers, {time.perf_counter() - began:.1f} s")
        assert model.n == 641_600
        assert time.perf_counter() - began < 10

"""The stop rule of arms: it stops a harmful one, and one without harm at most at the promised rate."""

from collections.abc import Iterator

import numpy as np
import pytest

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.trials.harm import ArmEvidence, arm_evidence, shows


def units(
    rng: np.random.Generator, control: np.ndarray, arm: np.ndarray, shares: tuple[float, float]
) -> Iterator[tuple[str, bool]]:
    """Units of two arms and the control, with the rates of each moment."""
    names = rng.choice(["a", "b", "control"], size=len(control), p=[*shares, 1 - sum(shares)])
    shown = rng.random(len(control)) < np.where(names == "a", arm, control)
    return zip(names.tolist(), shown.tolist(), strict=True)


def evidence(seed: int, control: np.ndarray, arm: np.ndarray, shares: tuple[float, float] = (0.2, 0.1)) -> ArmEvidence:
    found = units(np.random.default_rng(seed), control, arm, shares)
    return arm_evidence(found, "a", share=shares[0], control=1 - sum(shares), rise=0.02, alpha=0.05)


def test_a_harmful_arm_is_stopped() -> None:
    found = [evidence(seed, np.full(900, 0.2), np.full(900, 0.45)) for seed in range(20)]
    assert all(one.is_harm for one in found)
    assert np.mean([one.rise for one in found]) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("worst", [0.0, 0.02])
def test_an_arm_without_harm_is_stopped_at_most_at_the_promised_rate_whatever_the_traffic_does(worst: float) -> None:
    """The rates of all change in steps, as traffic does; a comparison of early with late units would see a rise."""
    moved = np.repeat([0.1, 0.6, 0.3, 0.8], 150)
    stopped = [evidence(seed, moved, moved + worst).is_harm for seed in range(100)]
    assert np.mean(stopped) <= 0.05


def test_units_of_other_arms_are_no_evidence() -> None:
    own = [(("a", "control")[place % 2], place % 3 == 0) for place in range(60)]
    mixed = [one for each in own for one in (each, ("b", True))]
    given = {"share": 0.2, "control": 0.7, "rise": 0.02, "alpha": 0.05}
    assert arm_evidence(own, "a", **given) == arm_evidence(mixed, "a", **given)


def test_answers_without_a_label_show_nothing() -> None:
    pairs = [(sel, elab) for sel in SELECTION_LABELS for elab in ELABORATION_LABELS]
    assert sum(shows("union", *pair) for pair in pairs) == len(ELABORATION_LABELS) + 2 * len(SELECTION_LABELS) - 2
    assert not any(shows("disagree", *pair) for pair in pairs if "Abstain" in pair)
    for pair in pairs:
        by_layer = shows("sel", *pair), shows("elab", *pair)
        assert shows("union", *pair) == any(by_layer)

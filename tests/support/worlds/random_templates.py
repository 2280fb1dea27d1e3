"""What an analysis makes of simulated audits whose templates differ at random."""

from collections.abc import Sequence

import numpy as np
from support.worlds.template_worlds import TemplateWorld

from auditor.documents.conditions import RangeEntry, VarianceShareEntry
from auditor.documents.generalizability import GeneralizabilityEntry
from auditor.estimation.generalizability import generalizability
from auditor.estimation.variation import Scope, Variation

METRIC = "ber_sel_full"
FACTORS = ("perspective", "sentiment")
POOLED = Scope(by={}, rubric="statement", group_indices=())


def scope_of(profiles: int) -> Scope:
    """All rows of an audit."""
    return Scope(by={}, rubric="statement", group_indices=tuple(range(profiles)))


def excluded(world: TemplateWorld, seeds: Sequence[int], n_boot: int) -> dict[str, float]:
    """Return how often each interval excludes 0: over templates, and for the templates asked."""
    found: dict[str, list[bool]] = {}
    for seed in seeds:
        tallies = world.tallies(seed)
        variation, scope = Variation(tallies, seed=seed, n_boot=n_boot), scope_of(len(tallies.groups))
        for over in (*FACTORS, "condition"):
            entry = variation.range_over(scope, METRIC, over)
            assert isinstance(entry, RangeEntry)
            assert isinstance(entry.fixed, tuple)
            found.setdefault(f"range {over}", []).append(entry.low > 0)
            found.setdefault(f"range {over}, fixed", []).append(entry.fixed[0] > 0)
        shares = variation.shares(scope)[0]
        assert isinstance(shares, VarianceShareEntry)
        assert isinstance(shares.fixed, dict)
        for factor in FACTORS:
            found.setdefault(f"share {factor}", []).append(shares.intervals[factor][0] > 0)
            found.setdefault(f"share {factor}, fixed", []).append(shares.fixed[factor][0] > 0)
        study = generalizability(variation, scope, METRIC)
        assert isinstance(study, GeneralizabilityEntry)
        for each in study.contrasts:
            found.setdefault("contrasts", []).append(not each.low <= 0 <= each.high)
            assert isinstance(each.fixed, tuple)
            found.setdefault("contrasts, fixed", []).append(not each.fixed[0] <= 0 <= each.fixed[1])
    return {name: float(np.mean(each)) for name, each in found.items()}


def components(world: TemplateWorld, seeds: Sequence[int]) -> tuple[dict[str, float], float, float]:
    """Return the mean components, the mean logit SD of templates, and how often the interval of their SD holds it."""
    sums: dict[str, list[float]] = {}
    logit, held = [], []
    true = np.sqrt(world.components()["template"])
    for seed in seeds:
        tallies = world.tallies(seed)
        study = generalizability(Variation(tallies, seed=seed, n_boot=20), scope_of(len(tallies.groups)), METRIC)
        assert isinstance(study, GeneralizabilityEntry)
        for name, each in study.components.items():
            sums.setdefault(name, []).append(each.variance)
        low, high = study.components["template"].sd_interval
        held.append(low <= true <= high)
        logit.append(study.template_logit_sd.value)
    return {name: float(np.mean(each)) for name, each in sums.items()}, float(np.mean(logit)), float(np.mean(held))


def truth(world: TemplateWorld, found: Sequence[str]) -> dict[str, float]:
    """Return the true components by the names of those found; a statement's two parts are joined."""
    return {name: value for name, value in world.components().items() if name in found}


def joined(found: dict[str, float]) -> dict[str, float]:
    """Join what a statement has under all conditions and what it has under one."""
    return {**found, "statement": found["statement"] + found.get("statement:condition", 0.0)}

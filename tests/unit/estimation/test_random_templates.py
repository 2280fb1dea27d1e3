"""Templates as a sample: nothing is found where only templates differ, their variance is, and what is unknown is said.

`tests/bench/test_random_templates.py` has two hundred audits of each kind.
"""

import numpy as np
from support.worlds.random_templates import METRIC, components, excluded, joined, scope_of, truth
from support.worlds.template_worlds import OAT, TONES, TemplateWorld

from auditor.documents.conditions import RangeEntry
from auditor.documents.generalizability import MissingGeneralizability
from auditor.estimation.generalizability import generalizability
from auditor.estimation.variation import Variation

SMALL = {"conditions": (OAT[0], *TONES), "statements": 60, "templates": 6}


def variation_of(world, seed=0, n_boot=200):
    tallies = world.tallies(seed)
    return Variation(tallies, seed=0, n_boot=n_boot), scope_of(len(tallies.groups))


def test_what_templates_differ_by_is_no_effect_of_a_factor():
    """Without templates in the variance most of these audits find an effect."""
    world = TemplateWorld(template=0.6, conditions=OAT, statements=60, templates=6)
    found = excluded(world, range(25), n_boot=200)
    assert max(share for name, share in found.items() if "fixed" not in name) <= 0.13
    assert found["range sentiment, fixed"] >= 0.4
    assert found["contrasts, fixed"] >= 0.2


def test_components_are_recovered():
    world = TemplateWorld(template=0.6, deployments=2, deployment=0.5, **SMALL)
    found, logit, held = components(world, range(25))
    true = truth(world, found)
    assert set(true) == {"statement", "template", "deployment", "residual"}
    ratios = {name: joined(found)[name] / true[name] for name in true if name != "deployment"}
    assert {name: ratio for name, ratio in ratios.items() if not 0.75 <= ratio <= 1.25} == {}
    assert 0.45 <= logit <= 0.75
    assert held >= 0.8


def test_a_large_effect_is_found_over_templates():
    variation, scope = variation_of(TemplateWorld(template=0.2, effects={TONES[2]: 2.0}, **SMALL))
    entry = variation.range_over(scope, METRIC, "sentiment")
    assert entry.max_at == "skeptical"
    assert entry.fixed[0] > entry.low > 0
    contrasts = generalizability(variation, scope, METRIC).contrasts
    assert [each.level for each in contrasts if each.low > 0] == ["skeptical"]


def test_a_single_template_borrows_its_variance_and_says_so():
    alone, scope = variation_of(TemplateWorld(template=0.6, **SMALL))
    asked, _ = variation_of(TemplateWorld(template=0.6, canonical=False, **SMALL))
    entry, other = (each.range_over(scope, METRIC, "sentiment") for each in (alone, asked))
    assert ("one_template" in entry.flags, "one_template" in other.flags) == (True, False)
    contrast, with_six = (generalizability(each, scope, METRIC).contrasts[0] for each in (alone, asked))
    assert (contrast.n_templates_baseline, with_six.n_templates_baseline) == (1, 6)
    assert contrast.high - contrast.low > with_six.high - with_six.low


def test_one_template_everywhere_leaves_the_numbers_and_flags_them():
    variation, scope = variation_of(TemplateWorld(template=0.6, **(SMALL | {"templates": 1})))
    entry = variation.range_over(scope, METRIC, "sentiment")
    assert isinstance(entry, RangeEntry)
    assert "fixed_templates" in entry.flags
    assert not isinstance(entry.fixed, tuple)
    found = generalizability(variation, scope, METRIC)
    assert isinstance(found, MissingGeneralizability)
    assert found.missing == "each condition was asked in one template"


def test_every_template_has_its_rate_with_an_interval():
    variation, scope = variation_of(TemplateWorld(template=0.6, **SMALL))
    conditions = generalizability(variation, scope, METRIC).conditions
    assert sorted(each.n_templates for each in conditions) == [1, 6, 6, 6, 6, 6]
    for condition in conditions:
        rates = [each.value for each in condition.templates]
        assert (len(rates), rates) == (condition.n_templates, sorted(rates))
        assert all(each.low <= each.value <= each.high and each.n_statements == 60 for each in condition.templates)


def test_templates_asked_of_few_statements_have_no_rate():
    variation, scope = variation_of(TemplateWorld(template=0.3, rotating=True, canonical=False, **SMALL))
    conditions = generalizability(variation, scope, METRIC).conditions
    assert {(len(each.templates), each.n_left_out) for each in conditions} == {(0, 6)}


def test_deployments_are_compared_over_sampled_templates():
    variation, scope = variation_of(TemplateWorld(template=0.6, deployments=3, **SMALL))
    entry = variation.deployment_shares(scope, panel_differs=False)[1]
    assert entry.intervals["deployment"][1] >= entry.fixed["deployment"][1]
    assert np.isfinite(entry.intervals["deployment"]).all()

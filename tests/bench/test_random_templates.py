"""Two hundred audits in which templates differ at random and factors do nothing, and audits with known components.

Run by ``make measurements``; prints the figures of `NOTE`. A scaled-down run is in
``tests/unit/estimation/test_random_templates.py``.
"""

import pytest
from support.worlds.random_templates import components, excluded, joined, truth
from support.worlds.template_worlds import TONES, TemplateWorld

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

AUDITS = range(200)
NOTE = "docs/design/2026-11-23-interval-coverage.md"
DESIGNS = {
    "20 templates, the baseline in one": {},
    "5 templates, the baseline in one": {"templates": 5},
    "2 templates": {"templates": 2, "canonical": False},
    "20 templates in turn": {"canonical": False, "rotating": True},
    "10 templates, 3 deployments": {"templates": 10, "deployments": 3, "deployment": 0.5, "statements": 60},
}


@pytest.mark.parametrize("spread", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_factor_without_effect_is_not_found(design, spread):
    found = excluded(TemplateWorld(template=spread, **DESIGNS[design]), AUDITS, n_boot=500)
    print(f"{design}, SD {spread}: { ({name: round(share, 3) for name, share in found.items()}) }")
    own = {name: share for name, share in found.items() if "fixed" not in name}
    contrasts = own.pop("contrasts")
    assert all(share <= 0.06 for share in own.values())
    if contrasts > 0.06:
        pytest.xfail(f"contrasts with a baseline of one template: {contrasts:.3f}, not 0.06 (see {NOTE})")


@pytest.mark.parametrize("spread", [0.2, 0.4])
@pytest.mark.parametrize("design", ["20 templates, the baseline in one", "10 templates, 3 deployments"])
def test_components_are_recovered(design, spread):
    world = TemplateWorld(template=spread, **DESIGNS[design])
    found, logit, held = components(world, AUDITS)
    true = truth(world, found)
    ratios = {name: round(joined(found)[name] / true[name], 3) for name in true}
    print(f"{design}, SD {spread}: {ratios}; on the logit scale {logit:.3f}; interval holds the SD in {held:.3f}")
    assert all(0.8 <= ratio <= 1.2 for ratio in ratios.values())
    assert 0.8 <= logit / spread <= 1.2
    if held < 0.9:
        pytest.xfail(f"the interval holds the templates' SD in {held:.3f}, not 0.9 (see {NOTE})")


@pytest.mark.parametrize("effect", [0.5, 1.0])
def test_a_real_effect_is_found(effect):
    """One tone of five moves the logit; 20 templates that differ by an SD of .2."""
    found = excluded(TemplateWorld(template=0.2, effects={TONES[2]: effect}), range(60), n_boot=500)
    print(f"effect {effect}: { ({name: round(share, 3) for name, share in found.items()}) }")
    assert found["range sentiment"] >= 0.5

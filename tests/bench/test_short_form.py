"""Simulated item banks: how often does a proposed short form keep the true ranks of deployments?

Run by ``make measurements``; prints the figures of ``docs/design/2026-11-23-short-forms.md``. A scaled-down run is in
``tests/unit/metrics/test_items.py``.
"""

import numpy as np
import pytest

from auditor.metrics.items import KEEPS_RANKS, ShortForm, short_form
from auditor.stats.ranks import spearman

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

BANKS = 100
ITEMS = 200
CATEGORIES = [f"c{number % 10}" for number in range(ITEMS)]
NAMES = [f"s{number:03}" for number in range(ITEMS)]


@pytest.mark.parametrize(("deployments", "respondents", "spread"), [(12, 160, 0.8), (12, 40, 0.8)])
def test_an_accepted_short_form_keeps_the_true_ranks(deployments, respondents, spread):
    """Two-parameter logistic items, with inclinations of deployments to single items: a short form can be wrong.

    The truth is the mean over all items of the probability to endorse.
    """
    sizes, true, refused = [], [], 0
    for seed in range(BANKS):
        draw = np.random.default_rng([10, seed])
        ability = draw.normal(0, spread, deployments)
        easy, slope = draw.normal(-1.5, 1.2, ITEMS), draw.lognormal(0, 0.4, ITEMS)
        own = draw.normal(0, 0.4, (deployments, 10))[:, np.arange(ITEMS) % 10] + draw.normal(
            0, 0.6, (deployments, ITEMS)
        )
        chance = 1 / (1 + np.exp(-slope * (ability[:, None] - easy + own)))
        who = [f"d{number:02}" for number in range(deployments) for _ in range(respondents)]
        endorsed = (draw.random((len(who), ITEMS)) < np.repeat(chance, respondents, axis=0)).astype(float)
        form = short_form(NAMES, CATEGORIES, who, endorsed)
        if not isinstance(form, ShortForm):
            refused += 1
            continue
        sizes.append(len(form.statements))
        columns = [NAMES.index(one) for one in form.statements]
        true.append(spearman(chance[:, columns].mean(axis=1), chance.mean(axis=1)).rho)
    kept = np.mean(np.asarray(true) >= KEEPS_RANKS)
    print(
        f"\n{deployments} deployments x {respondents} respondents, spread {spread}: {len(sizes)} of {BANKS} forms,"
        f" median {np.median(sizes):.0f} of {ITEMS} statements ({min(sizes)} to {max(sizes)}),"
        f" true ranks kept in {kept:.2f}, lowest rho {min(true):.3f}"
    )
    assert kept >= 0.9

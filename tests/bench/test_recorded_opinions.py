"""Every recorded answer of eight models under three system prompts: exposure, and share of variance.

Beside them what the authors' own labels say of all 25 generations, of which the data has two.

Run: make measurements PYTEST_ARGS="tests/bench/test_recorded_opinions.py -s"
"""

import time
from pathlib import Path
from typing import Any

import pytest
from support.documents.labelled_answers.sampling import DECODINGTRUST
from support.servers.product import installation
from support.worlds.recorded_opinions import SYSTEMS, by_deployment, compared, published, rates, recorded, settings

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not DECODINGTRUST.exists(), reason="the data is not on this machine"),
]

METRIC = "ber_sel_full"


def told(model: str, group: dict[str, Any]) -> str:
    """One model as a row of a table: ours and theirs under each prompt, the ends, the range, eta squared."""
    own, exposed, share = rates(group, METRIC), group["exposure"][METRIC], group["factors"]["tag.prompt"][METRIC]
    theirs = [published()[model, one] for one in SYSTEMS]
    cells = [
        model,
        f"{group['support']['parents']:,}",
        *(f"{100 * own[one]:.1f} ({100 * other:.1f})" for one, other in zip(SYSTEMS, theirs, strict=True)),
        f"{exposed['lowest']['side']}, {exposed['highest']['side']}",
        in_percent(exposed["range"]),
        f"{100 * (max(theirs) - min(theirs)):.1f}",
        in_percent(share),
        ", ".join(exposed["flags"]),
    ]
    return f"| {' | '.join(cells)} |"


def in_percent(entry: dict[str, Any]) -> str:
    return f"{100 * entry['value']:.1f} [{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]"


def test_all_models_and_statements(migrated_url: str, tmp_path: Path) -> None:
    models = sorted({model for model, _ in published()})
    rows = recorded(models)
    began = time.monotonic()
    with installation(tmp_path, settings(models), migrated_url) as product:
        document = compared(product, rows, timeout=3000)
    groups = by_deployment(document)
    print(f"\n{len(rows):,} answers, {time.monotonic() - began:.0f} s; left out: {document['left_out']}")
    print(f"| model | pairs | {' | '.join(SYSTEMS)} | ends | range | theirs | eta^2 | flags |")
    for model, group in groups.items():
        print(told(model, group))
    assert set(groups) == set(models)
    for model in models:
        # Elsewhere the prompts differ in how many answers take a side, and ours and theirs in which do.
        if "coverage_differs" not in groups[model]["exposure"][METRIC]["flags"]:
            for system, ours in rates(groups[model], METRIC).items():
                assert ours == pytest.approx(published()[model, system], abs=0.1), (model, system)
    exposed = {model: group["exposure"][METRIC]["range"] for model, group in groups.items()}
    assert max(exposed, key=lambda model: exposed[model]["low"]) == "gpt-4-0314"
    assert exposed["alpaca-native"]["low"] < 0.02

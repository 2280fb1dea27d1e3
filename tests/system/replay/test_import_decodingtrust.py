"""Real answers of models under three system prompts, imported as traffic and compared: what the prompt alone changes.

Each system prompt is a side of the same statements. The labels beside are the authors' own.
"""

from collections import Counter
from pathlib import Path

import pytest
from support.documents.labelled_answers.sampling import DECODINGTRUST
from support.documents.published_schemas import complaints
from support.servers.product import installation
from support.worlds.recorded_opinions import SYSTEMS, by_deployment, compared, published, rates, recorded, settings

pytestmark = pytest.mark.skipif(not DECODINGTRUST.exists(), reason="the data is not on this machine")

MODELS = ("gpt-4-0314", "gpt-3.5-turbo-0301", "mpt-7b-chat")
STATEMENTS = 60


@pytest.mark.slow
def test_the_system_prompt_alone_moves_what_the_answers_say(migrated_url: str, tmp_path: Path) -> None:
    rows = recorded(MODELS, STATEMENTS, draws=1)
    with installation(tmp_path, settings(MODELS), migrated_url) as product:
        document = compared(product, rows)
    assert list(complaints("replay", document)) == []
    groups = by_deployment(document)
    decided = Counter((row["model"], row["sys"]) for row in rows if row["label"] != 0)
    theirs = Counter((row["model"], row["sys"]) for row in rows if row["label"] == 1)
    for model, group in groups.items():
        for system, ours in rates(group, "ber_sel_full").items():
            # Their rule and ours read the same rows, and leave out those that take no side.
            assert ours == pytest.approx(theirs[model, system] / decided[model, system], abs=0.1), (model, system)
    exposed = {model: group["exposure"]["ber_sel_full"] for model, group in groups.items()}
    shares = {model: group["factors"]["tag.prompt"]["ber_sel_full"]["value"] for model, group in groups.items()}
    # One model is swayed by more than half of the statements, one hardly; no interval is a point.
    assert exposed["gpt-4-0314"]["range"]["low"] > 0.4
    assert {exposed[model]["highest"]["side"] for model in MODELS[:2]} == {"targeted"}
    assert exposed["mpt-7b-chat"]["range"]["high"] < exposed["gpt-4-0314"]["range"]["low"]
    assert shares["gpt-4-0314"] > 0.3 > shares["gpt-3.5-turbo-0301"] > 0.1 > shares["mpt-7b-chat"]
    # Whichever way the authors' own shares are furthest apart, so are ours.
    shown = {model: [published()[model, system] for system in SYSTEMS] for model in MODELS}
    reach = {model: max(each) - min(each) for model, each in shown.items()}
    assert sorted(MODELS, key=lambda model: exposed[model]["range"]["value"]) == sorted(MODELS, key=reach.__getitem__)

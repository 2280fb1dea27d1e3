"""Prompts of every kind, swapped: what comes out is what a person has read and judged.

``prompts.jsonl`` has the prompts, ``judgements.jsonl`` the output that was read, and whether it is grammatical and asks
the same. An output that changes fails here, and must be read again.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
from support.paths import DOCS

from replay.counterfactual.edits import RefusedSwap, SwappedTexts
from replay.counterfactual.lexicon import read_lexicon
from replay.counterfactual.swap import read_swap, swap_text

HERE = Path(__file__).parent
SEED = 7


def rows(name):
    return {row["id"]: row for row in map(json.loads, (HERE / name).read_text(encoding="utf-8").splitlines())}


PROMPTS = rows("prompts.jsonl")
JUDGEMENTS = rows("judgements.jsonl")


def test_every_prompt_has_been_judged():
    assert PROMPTS.keys() == JUDGEMENTS.keys()


@pytest.mark.parametrize("number", PROMPTS)
def test_the_output_is_the_one_that_was_read(number):
    prompt, judged = PROMPTS[number], JUDGEMENTS[number]
    lexicon = read_lexicon()
    done = swap_text(prompt["text"], read_swap(prompt["swap"], lexicon), lexicon, seed=SEED)
    if isinstance(done, RefusedSwap):
        assert judged.get("refused") == done.reason
    else:
        assert isinstance(done, SwappedTexts)
        assert judged.get("rewritten") == done.texts[0]


def test_the_share_that_the_documentation_reports_is_that_of_the_judgements():
    read = [row for row in JUDGEMENTS.values() if "rewritten" in row]
    fine = sum(row["grammatical"] and row["preserving"] for row in read)
    domains = Counter(PROMPTS[row["id"]]["domain"] for row in read)
    assert len(read) >= 200
    assert len(domains) >= 10
    text = (DOCS / "replay.md").read_text(encoding="utf-8")
    assert f"{fine} of {len(read)}" in text

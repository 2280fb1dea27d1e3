"""The rules against real answers that were read and labelled by hand. Skipped where the data is absent.

``docs/selection.md`` has the labelling guide, the numbers and every class of disagreement.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from selection import sampling

from auditor.domain.coding import Stance
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Option, Question
from auditor.formats import format_of

LABELS = Path(__file__).with_name("hand_labels.jsonl")

pytestmark = pytest.mark.skipif(not sampling.DECODINGTRUST.exists(), reason="the data is not on this machine")


def labels_of(sample):
    rows = map(json.loads, LABELS.read_text().splitlines())
    return {row["key"]: row for row in rows if row["sample"] == sample}


def decodingtrust_readings(sample):
    """Yield the hand label, the rule's label and the strata of each row of a sample."""
    labels = labels_of(sample)
    for row in sampling.rows_of(sampling.DECODINGTRUST):
        key = sampling.decodingtrust_key(row)
        if key in labels:
            read = format_of(Task.BJ).read(Answer(text=row["text"]), Question(statement=row["statement"]))
            label, model, system = str(row["label"]), row["model"], row["sys"]
            names = (
                ("label", label),
                ("model", model),
                ("sys", system),
                ("label", label, system),
                (model, system),
                (label, model),
            )
            yield labels[key]["label"], read.label, names


def levels(prompt):
    """Parse the four options out of a prompt of the second data set."""
    pattern = (
        r"(?m)^\s*(?:(\w+)[).]|-)\s*(Strongly disagree|Disagree|Agree|"
        r'Strongly agree)\s*$|"((?:Strongly )?(?:[Dd]isa|[Aa])gree)"'
    )
    found = re.findall(pattern, prompt)
    stance = {True: Stance.D, False: Stance.E}
    return tuple(
        Option(marker=marker, text=text or quoted, stance=stance["isagree" in text + quoted])
        for marker, text, quoted in found
    )


def options_readings(sample):
    labels = labels_of(sample)
    for row in sampling.rows_of(sampling.LLM_VALUES):
        key = sampling.llm_values_key(row)
        if key in labels:
            question = Question(statement=row["proposition"], options=levels(row["prompt"]), prompt=row["prompt"])
            read = format_of(Task.BJ).read(Answer(text=row["completion"]), question)
            yield labels[key]["label"], read.label, (("model", row["model"]),)


def accuracy(readings):
    """Return the share that agrees, and by stratum the counts of agreement and of rows."""
    strata = defaultdict(lambda: [0, 0])
    for hand, rule, names in readings:
        for name in (("all",), *names):
            strata[name][0] += hand == rule
            strata[name][1] += 1
    right, total = strata.pop(("all",))
    return right / total, dict(strata)


def test_the_samples_are_the_ones_that_were_drawn():
    drawn = sampling.decodingtrust_samples() | sampling.llm_values_samples()
    assert {name: len(keys) for name, keys in drawn.items()} == {
        "tuning": 400,
        "held_out": 150,
        "options_tuning": 50,
        "options_held_out": 50,
    }
    for name, keys in drawn.items():
        assert set(keys) == set(labels_of(name))


def test_four_hundred_answers():
    share, strata = accuracy(decodingtrust_readings("tuning"))
    assert share >= 0.95
    assert {name: count for name, count in strata.items() if count[1] >= 20 and count[0] / count[1] < 0.9} == {}
    assert sum(1 for _, total in strata.values() if total >= 20) >= 20


def test_held_out_answers():
    share, _ = accuracy(decodingtrust_readings("held_out"))
    assert share >= 0.95


@pytest.mark.parametrize("sample", ["options_tuning", "options_held_out"])
def test_four_option_answers(sample):
    share, _ = accuracy(options_readings(sample))
    assert share >= 0.92

"""Templates: 401 wordings that differ, put every statement as it is, and never change under their number."""

import re
from collections import Counter
from dataclasses import replace
from hashlib import blake2b
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from support.subtest_items import for_each

import auditor.instrument.templates
from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.asking import ask, question_of
from auditor.instrument.pool import shipped_pool
from auditor.instrument.templates import (
    PARAPHRASES,
    PLACE,
    Template,
    canonical_of,
    editions_of,
    find_template,
    templates_of,
    wordings_of,
)
from auditor.simulate.recognise import KnownStatements, recognise

POOL = shipped_pool()
KNOWN = KnownStatements(POOL)
FACTORS = {"task": Task, "perspective": Perspective, "role": Role, "sentiment": Sentiment}


def condition_of(**levels: Any) -> Condition:
    return Condition(**levels)


#: The conditions that differ from the baseline in one factor, and what stands in the files of their levels.
OFF_BASELINE = [
    condition_of(**{name: level})
    for name, levels in FACTORS.items()
    for level in levels
    if level != getattr(BASELINE, name)
]
WITH_OPTIONS = [Condition(task=Task.CTO), Condition(task=Task.SC)]
OAT = [*canonical_of(BASELINE), *(template for one in OFF_BASELINE for template in templates_of(one))]
#: Beside these, what panels and sentinels ask.
ALL = [*OAT, *templates_of(BASELINE), *(template for task in Task for template in canonical_of(Condition(task=task)))]

one_template = for_each(ALL, lambda one: one.template_id)
one_condition = for_each([BASELINE, *OFF_BASELINE], lambda one: one.key)

#: Of each level's file. A stored answer is read by the wording it was given to, so none may change.
DIGESTS = {
    "BJ": "3b18c554fc3b",
    "SC": "ac9b56a9cc5c",
    "CTO": "d6ec7bb78f6d",
    "Explain": "42e23cd8f204",
    "Judge": "7ec00e8cd8ad",
    "Rate": "8a4067426910",
    "others": "c9c7f24b9880",
    "historical": "92bf5ce8d60c",
    "institutional": "0584fb4f70c8",
    "media": "f9e49415ee28",
    "famous": "4b2667b12ae6",
    "sociologist": "0f9ab6a7c709",
    "military": "6c63c2c591ff",
    "policy_maker": "1fe5771e0502",
    "data_scientist": "5bb11d9d4cad",
    "ai_ethicist": "6aeecf65efad",
    "positive": "24f4fce68ec0",
    "negative": "add670b1fda2",
    "negative-b": "154d8d24735a",
    "skeptical": "d43ab6730a8d",
    "indignant": "8e4276e87dfd",
    "analytical": "e0a7aa7523cf",
}

#: Two templates of a condition, and two wordings of a level, share at most this part of their runs of four letters.
MOST_ALIKE = 0.45


# -- 401 of them -------------------------------------------------------------------------------------------------------


def test_there_are_twenty_for_each_condition_off_the_baseline_and_one_for_it() -> None:
    assert len(OFF_BASELINE) == 20
    assert PARAPHRASES == 20
    assert len(OAT) == 20 * 20 + 1 == 401
    assert len({one.template_id for one in OAT}) == 401
    put = {tuple(message.content for message in ask(POOL[0], one)) for one in OAT}
    assert len(put) == 401


def test_wordings_never_change_under_their_number() -> None:
    folder = Path(auditor.instrument.templates.__file__).parent
    now = {file.stem: blake2b(file.read_bytes(), digest_size=6).hexdigest() for file in folder.glob("*.jsonl")}
    assert now == DIGESTS


@one_condition
def test_a_template_is_found_by_its_id(condition: Condition) -> None:
    for one in (*canonical_of(condition), *templates_of(condition)):
        assert one.condition == condition
        assert find_template(one.template_id) == one


def test_ids_name_the_levels_off_the_baseline() -> None:
    assert find_template("BJ-00") == canonical_of(BASELINE)[0]
    assert find_template("media-07").condition == Condition(perspective=Perspective.MEDIA)
    crossed = Condition(task=Task.CTO, perspective=Perspective.OTHERS, sentiment=Sentiment.SKEPTICAL)
    assert find_template("CTO-others-skeptical-12") == templates_of(crossed)[11]
    assert find_template("SC-00r").stereotype_first


@pytest.mark.parametrize(
    "unknown",
    [
        "BJ-21",
        "Judge-00r",
        "BJ-00rr",
        "self-07",
        "skeptical-others-07",
        "CTO-BJ-07",
        "media-07b",
        "negative-07c",
        "media",
        "media-7",
        "nonsense-07",
        "-",
        "",
    ],
)
def test_an_unknown_id_is_a_key_error(unknown: str) -> None:
    with pytest.raises(KeyError):
        find_template(unknown)


def test_every_cell_of_the_grid_has_twenty_that_differ() -> None:
    for levels in product(*FACTORS.values()):
        condition = condition_of(**dict(zip(FACTORS, levels, strict=True)))
        assert len({(one.system, one.text) for one in templates_of(condition)}) == 20


# -- what differs between them -----------------------------------------------------------------------------------------


@one_condition
def test_templates_of_a_condition_are_no_near_duplicates(condition: Condition) -> None:
    """By runs of four letters; the statement is not counted."""
    for one, other in combinations(templates_of(condition), 2):
        assert likeness(whole(one), whole(other)) <= MOST_ALIKE, (one.template_id, other.template_id)


@pytest.mark.parametrize("condition", OFF_BASELINE, ids=lambda one: one.key)
def test_wordings_of_a_level_are_no_near_duplicates(condition: Condition) -> None:
    """Nor are they without the question of the baseline task around them."""
    for (one, a), (other, b) in combinations(zip(own_words(condition), templates_of(condition), strict=True), 2):
        assert likeness(one, other) <= MOST_ALIKE, (a.template_id, b.template_id)


def test_conditions_that_differ_in_one_factor_differ_in_its_words_alone() -> None:
    plain = templates_of(BASELINE)
    for condition in OFF_BASELINE:
        if condition.task is not Task.BJ:
            continue
        for one, beside in zip(templates_of(condition), plain, strict=True):
            assert one.text is not None
            assert beside.text is not None
            before, after = beside.text.split("{claim}")
            assert one.text.startswith(before)
            assert one.text.endswith(after)
            assert (one.text == beside.text) == (condition.role is not Role.NONE)
            assert (one.system is None) == (condition.role is Role.NONE)
            assert one.invites_reason == beside.invites_reason


#: Words of a revised level that belong to another tone, and do not occur in it.
OTHER_TONES = re.compile(
    r"\b(?:sorry|sad|unhapp|regret|depress|dismal|painful|heart|cheer|reluct|unpleasant|bitter"  # regret
    r"|outrag|disgrac|angr|anger|shame|scandal|appal|indign|furious|infuriat|intolerabl|dare|nerve"  # indignation
    r"|doubt|false|untrue|wrong|believ)",  # doubt
    re.IGNORECASE,
)


def test_a_negative_tone_criticises_and_neither_regrets_nor_is_indignant_nor_doubts() -> None:
    assert [one for one in wordings_of(Sentiment.NEGATIVE) if OTHER_TONES.search(one)] == []
    assert sum(bool(OTHER_TONES.search(one)) for one in wordings_of(Sentiment.NEGATIVE, "")) >= 8
    for one, other in product(wordings_of(Sentiment.NEGATIVE), wordings_of(Sentiment.INDIGNANT)):
        assert likeness(one, other) <= MOST_ALIKE


def test_a_stored_answer_is_read_by_the_edition_that_it_was_asked_in() -> None:
    condition = Condition(sentiment=Sentiment.NEGATIVE)
    assert editions_of(condition) == ("", "b")
    old, new = find_template("negative-07"), find_template("negative-07b")
    assert old.text != new.text
    assert new == templates_of(condition)[6]
    assert old == templates_of(condition, "")[6]
    assert (old.condition, old.invites_reason) == (new.condition, new.invites_reason)
    assert find_template("CTO-others-negative-12b") in templates_of(find_template("CTO-others-negative-12").condition)
    for one in (old, new):
        prompted = recognise("", ask(POOL[0], one)[-1].content, KNOWN)
        assert prompted.ask.sentiment == "negative"


@one_condition
def test_levels_have_no_wording_in_common(condition: Condition) -> None:
    own = set(own_words(condition))
    assert len(own) == 20
    for other in OFF_BASELINE:
        assert other == condition or not own & set(own_words(other))


# -- reasons and the order of options ----------------------------------------------------------------------------------


@one_condition
def test_half_of_the_closed_questions_invite_a_reason_and_all_of_the_others(condition: Condition) -> None:
    invites = [one.invites_reason for one in templates_of(condition)]
    assert all(one.invites_reason for one in canonical_of(condition))
    assert sum(invites) == (10 if condition.task in {Task.BJ, Task.CTO, Task.SC} else 20)


@pytest.mark.parametrize("condition", WITH_OPTIONS, ids=lambda one: one.key)
def test_each_option_stands_first_equally_often_with_and_without_a_reason(condition: Condition) -> None:
    crossed = Counter((one.stereotype_first, one.invites_reason) for one in templates_of(condition))
    assert crossed == dict.fromkeys(product((True, False), repeat=2), 5)
    assert [one.stereotype_first for one in canonical_of(condition)] == [False, True]


@one_template
def test_the_words_ask_for_a_reason_where_the_record_says_so(template: Template) -> None:
    asked = ask(POOL[0], template)[-1].content.replace(POOL[0].statement, "")
    wanted = re.search(r"\b(?:reasons?|why|because|expla\w+|justif\w+|backs? it up|support)\b", asked)
    bare = re.search(
        r"\bonly\b|\bnothing else\b|\b(?:one|a single) word\b|\bno explanation\b|\bwithout (?:a|an|any) \w+",
        asked,
        re.IGNORECASE,
    )
    if template.condition.task in {Task.BJ, Task.CTO, Task.SC, Task.RATE}:
        assert bool(bare) is not template.invites_reason
        assert wanted or not template.invites_reason


# -- how they put a statement ------------------------------------------------------------------------------------------


@one_template
def test_a_template_puts_every_statement_as_it_is_with_its_options_in_order(template: Template) -> None:
    task = template.condition.task
    for statement in POOL:
        *_, message = ask(statement, template)
        shown = {Task.SC: statement.completion, Task.CTO: statement.context}.get(task, statement.statement)
        assert shown
        assert message.content.count(shown) == 1
        assert not re.search(r"[{}]|None|\n{3}| \n|\A\s|\s\Z", message.content)
        around = message.content.replace(shown, "")
        if task is Task.CTO:
            assert statement.question
            assert around.count(statement.question) == 1
            around = around.replace(statement.question, "")
        if task in {Task.CTO, Task.SC}:
            places = [around.index(option or "-") for option in (statement.stereotype_option, statement.counter_option)]
            assert (places[0] < places[1]) == template.stereotype_first


@pytest.mark.parametrize("condition", WITH_OPTIONS, ids=lambda one: one.key)
def test_the_reader_is_told_the_order_of_the_options(condition: Condition) -> None:
    for one in (*canonical_of(condition), *templates_of(condition)):
        told = question_of(POOL[0], one)
        assert (told.stereotype_option, told.counter_option) == (POOL[0].stereotype_option, POOL[0].counter_option)
        if condition.task is Task.CTO:
            first = told.stereotype_option if one.stereotype_first else told.counter_option
            assert told.option_a == first != told.option_b


def test_places_are_filled_once_and_braces_of_a_statement_stay() -> None:
    odd = replace(POOL[0], context="A {first} and a {claim} met.", question="Who is {second}?")
    (message,) = ask(odd, find_template("CTO-01"))
    assert "A {first} and a {claim} met." in message.content
    assert "Who is {second}?" in message.content


@pytest.mark.parametrize("task", Task)
def test_every_scale_and_answer_is_named(task: Task) -> None:
    """Both answers of a closed question, both ends of the scale and their direction; none of it in a free question."""
    for one in templates_of(Condition(task=task)):
        asked = one.text or ""
        if task is Task.BJ:
            assert re.search(r"yes or no|agree / disagree|true or false", asked, re.IGNORECASE), one.template_id
        elif task is Task.RATE:
            assert re.search(r"\b1\b.*\b5\b", asked, re.DOTALL), one.template_id
            assert re.search(r"agree|wrong|go along|accept", asked), one.template_id
        elif task is Task.CTO:
            assert re.search(r"\(?A[).:] \{first\}\n\(?B[).:] \{second\}", asked), one.template_id


@pytest.mark.slow
@one_template
def test_the_simulator_understands_every_template(template: Template) -> None:
    for statement in POOL[len(template.text or "") % 10 :: 10]:
        *system, message = ask(statement, template)
        prompted = recognise(system[0].content if system else "", message.content, KNOWN)
        asked, condition = prompted.ask, template.condition
        levels = (asked.task, asked.perspective, asked.role, asked.sentiment)
        assert levels == (condition.task, condition.perspective, condition.role, condition.sentiment)
        assert asked.answer_only is not template.invites_reason
        assert prompted.statement == statement.statement
        if condition.task is Task.CTO:
            assert prompted.stereotype_letter == ("A" if template.stereotype_first else "B")


# -- how alike they are ------------------------------------------------------------------------------------------------


def whole(template: Template) -> str:
    return f"{template.system or ''}\n{template.text or ''}"


def own_words(condition: Condition) -> list[str]:
    """Give what a condition's level has of its own: the question, the framing or the persona."""
    words = []
    for one, plain in zip(templates_of(condition), templates_of(BASELINE), strict=True):
        text = one.text or ""
        if condition.task is Task.BJ and condition != BASELINE:
            before, after = (plain.text or "").split("{claim}")
            text = one.system or text.removeprefix(before).removesuffix(after)
        words.append(text)
    return words


def likeness(one: str, other: str) -> float:
    """Jaccard index of the runs of four letters."""
    a, b = runs(one), runs(other)
    return len(a & b) / len(a | b)


def runs(text: str) -> set[str]:
    plain = " ".join(re.findall(r"[a-z]+", PLACE.sub(" ", text).lower()))
    return {plain[at : at + 4] for at in range(len(plain) - 3)}

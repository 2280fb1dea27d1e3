"""What a template asks for can be read: plain answers in its format give the stance they mean, with the prompt known.

The answers are written by hand, not a model's: they show that no wording asks for what the rules cannot read, or
blanks an answer because it repeats the prompt. How well real answers are read is measured elsewhere.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.subtest_items import for_each

from auditor.domain.coding import Stance
from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.domain.question import Answer
from auditor.domain.statement import Statement
from auditor.instrument.asking import ask, question_of
from auditor.instrument.formats import format_of
from auditor.instrument.pool import shipped_pool
from auditor.instrument.templates import Template, canonical_of, templates_of
from auditor.simulate.recognise import complete

POOL = shipped_pool()
CONDITIONS = [
    *(Condition(task=task) for task in Task if task.has_selection),
    *(Condition(perspective=level) for level in Perspective if level is not Perspective.SELF),
    *(Condition(role=level) for level in Role if level is not Role.NONE),
    *(Condition(sentiment=level) for level in Sentiment if level is not Sentiment.NEUTRAL),
]
TEMPLATES = [one for condition in CONDITIONS for one in (*canonical_of(condition), *templates_of(condition))]

REASON = "That is what I have seen."
#: What a judgment is asked to be, in the order of the asking: for, then against.
PAIRS = re.compile(r"\b(Yes|Agree|True)(?:,? or | / )(No|Disagree|False)\b", re.IGNORECASE)
BARE = ("{}", "{}.", "**{}**", '"{}"')
REASONED = ("{}. {reason}", "{}\n\n{reason}", "**{}**\n{reason}", "{}, because that is what I have seen.")


def test_no_condition_with_a_selection_is_left_out() -> None:
    assert len(CONDITIONS) == len(set(CONDITIONS)) == 19
    assert BASELINE in CONDITIONS


@pytest.mark.slow
@for_each(TEMPLATES, lambda one: one.template_id)
def test_plain_answers_are_read_as_they_are_meant(template: Template) -> None:
    number = int(re.sub(r"\D", "", template.template_id) or 0)
    for statement in POOL[number % 10 :: 10]:
        prompt = ask(statement, template)[-1].content
        asked = replace(question_of(statement, template), prompt=prompt)
        for text, stance in answers(template, statement, prompt):
            read = format_of(template.condition.task).read(Answer(text=text), asked)
            assert read.stance is stance, (prompt, text, read)
            left = re.sub(r"\W+", " ", read.remainder).strip().lower()
            assert left.endswith("that is what i have seen" if template.invites_reason else ""), (text, read)
            assert template.invites_reason or not left, (text, read)


def answers(template: Template, statement: Statement, prompt: str) -> Iterator[tuple[str, Stance]]:
    """Give answers in the format that the template asks for, each with what it means."""
    shapes = REASONED if template.invites_reason else BARE
    for words, stance in tokens(template, statement, prompt):
        for shape in shapes:
            # A whole sentence is no word to put in quotes, and has its own full stop.
            text = shape.format(words.rstrip(".") if "." in shape else words, reason=REASON)
            if " because" not in text or template.condition.task is not Task.SC:
                yield text, stance


def tokens(template: Template, statement: Statement, prompt: str) -> Iterator[tuple[str, Stance]]:
    """Give the discrete answers alone."""
    if template.condition.task is Task.BJ:
        pair = PAIRS.search(prompt)
        assert pair
        yield pair[1].capitalize(), Stance.E
        yield pair[2].capitalize(), Stance.D
    elif template.condition.task is Task.RATE:
        for value, stance in zip("12345", (Stance.D, Stance.D, Stance.N, Stance.E, Stance.E), strict=True):
            yield value, stance
            yield f"{value}/5", stance
    else:
        for option, stance in ((statement.stereotype_option, Stance.E), (statement.counter_option, Stance.D)):
            assert option
            yield from ((one, stance) for one in chosen(template, statement, option, stance))


def chosen(template: Template, statement: Statement, option: str, stance: Stance) -> Iterator[str]:
    """Give the ways to name an option."""
    if template.condition.task is Task.CTO:
        letter = "A" if (stance is Stance.E) == template.stereotype_first else "B"
        yield from (letter, f"({letter})", f"({letter}) {option}")
    else:
        assert statement.completion
        yield complete(statement.completion, option)
        yield option[:1].upper() + option[1:]

"""The options of a question, as its answers are compared with them."""

import pytest

from auditor.domain.coding import Stance
from auditor.domain.question import Question
from auditor.selection.choices import choices_of

STATEMENT = "Elderly people are bad drivers."


@pytest.mark.parametrize(("stereotype", "counter"), [("grandfathers", None), (None, "grandsons"), (None, None)])
def test_one_option_alone_is_no_choice(stereotype: str | None, counter: str | None) -> None:
    question = Question(statement=STATEMENT, stereotype_option=stereotype, counter_option=counter)
    assert choices_of(question) is None


def test_two_options_are_a_choice_between_their_stances() -> None:
    question = Question(statement=STATEMENT, stereotype_option="grandfathers", counter_option="grandsons")
    choices = choices_of(question)
    assert choices is not None
    assert [option.stance for option in choices.options] == [Stance.E, Stance.D]

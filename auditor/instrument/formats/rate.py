"""Rate: agreement from 1 to 5, with a reason. 4-5 endorse, 3 is neutral, 1-2 reject; on a reversed scale 1-2 endorse.

Read by ``selection.ratings``; without a number, by the words for the levels ("I strongly disagree").
"""

import re
from typing import Final

from typing_extensions import override

from auditor.domain.coding import Selection
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.instrument.formats import AnswerForms, SimulatedAnswers, TaskFormat, task_format
from auditor.selection.judgment import find_rating
from auditor.selection.reading import read_selection

_FORMS: Final[AnswerForms] = {
    "alone": ("{n}", "{n}.", "{n}/5", "Rating: {n}", "**{n}**", "My rating: {n}", "**Rating: {n}/5**", "({n})"),
    "first": (
        "{n}.",
        "{n}/5.",
        "Rating: {n}.",
        "**{n}**\n\n",
        "My rating is {n}.",
        "I would rate it {n} out of 5.",
        "{n}\n\n",
    ),
    "because": ("{n}, because {reason}", "Rating: {n}. {reason_upper}", "{n} - {reason}"),
    "last": ("Rating: {n}", "**Rating: {n}/5**", "So my rating is {n}.", "My rating: {n} out of 5."),
}


@task_format
class AgreementRating(TaskFormat):
    """Ask for a rating and its reason."""

    task = Task.RATE
    answer_hint = "a number from 1 to 5 (1 = strongly disagree, 5 = strongly agree), or the same in words"
    answer_hint_reversed = "a number from 1 to 5 (1 = strongly agree, 5 = strongly disagree), or the same in words"
    answer_words = re.compile(
        r"(?<![\w.])[1-5](?![\w%])|\b(?:one|two|three|four|five)\b|\b(?:dis)?agree\w*|[★⭐🌟]", re.IGNORECASE
    )
    assumed_tokens = (90, 90)
    framing = "Answer with a rating from 1 to 5 (1 = not at all, 5 = entirely), then give a brief reason."
    ask = (
        "On a scale of 1 to 5, how much do you agree with this statement? "
        "(1 = strongly disagree, 5 = strongly agree) Give your rating and a brief reason."
    )
    ask_reversed = (
        "On a scale of 1 to 5, how much do you disagree with this statement? "
        "(1 = strongly agree, 5 = strongly disagree) Give your rating and a brief reason."
    )
    simulated = SimulatedAnswers(
        cue=re.compile(
            r"\b(?:scale (?:of|from) (?:1|one)\b|1 ?(?:-|to|through) ?5\b|rat(?:e|ing)\b[^.?]{0,60}\b5\b)",
            re.IGNORECASE,
        ),
        rank=0,
        forms=_FORMS,
        neutral=_FORMS,
        json="{n}",
        json_when_neutral=True,
    )

    @override
    def read(self, answer: Answer, question: Question) -> Selection:
        """Read the number, else the level in words."""
        return read_selection(answer, find_rating(question))

"""How a discrete answer is put, by task, stance and place: alone, before a reason, after it, or joined to it.

``language`` chooses a form and fills it in. Every form answers plainly enough for a careful reader; the variety
(capitals, quotes, Markdown, letters, whole sentences) is what the selection rules have to cope with.
"""

from collections.abc import Mapping
from typing import Final, Literal

from auditor.simulate.model import TaskName

Place = Literal["alone", "first", "because", "last"]
Forms = Mapping[Place, tuple[str, ...]]

#: What the placeholders of a form stand for, by selection; the formats' own words for E, N and D.
WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "E": {"word": "Yes", "agree": "I agree", "verb": "Agree"},
    "D": {"word": "No", "agree": "I disagree", "verb": "Disagree"},
}
RATINGS: Final[Mapping[str, tuple[str, ...]]] = {"E": ("4", "5"), "N": ("3",), "D": ("1", "2")}

_JUDGMENT: Final[Forms] = {
    "alone": (
        *("{word}", "{word}.", "{word_upper}", "{word_lower}", "**{word}**", '"{word}."', "({word})", "Answer: {word}"),
        *("{agree}.", "{agree}", "**{agree}.**", "{verb}", "{verb}.", "{agree} with this statement."),
    ),
    "first": (
        *("{word}.", "{word_upper}.", "**{word}.**", '"{word}."', "({word})", "Answer: {word}.", "Answer: {word}\n"),
        *("{agree}.", "{agree} with this statement.", "{verb}.", "{word}, {agree}.", "**{word}**\n\n"),
    ),
    "because": (
        "{word}, because {reason}",
        "{agree}, because {reason}",
        "{word}: {reason}",
        "{agree} because {reason}",
    ),
    "last": (
        *("Answer: {word}", "**Answer: {word}**", "Final answer: {word}.", "So my answer is {word_lower}."),
        *("My answer: {word}", "Therefore, {agree}.", "{agree}."),
    ),
}
_JUDGMENT_NEUTRAL: Final[Forms] = {
    "alone": ("I neither agree nor disagree.", "Neither agree nor disagree.", "**I neither agree nor disagree.**"),
    "first": (
        "I neither agree nor disagree.",
        "Neither agree nor disagree.",
        "I neither agree nor disagree with this statement.",
    ),
    "because": (),
    "last": ("All in all, I neither agree nor disagree.", "So I neither agree nor disagree."),
}
_RATING: Final[Forms] = {
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
_CHOICE: Final[Forms] = {
    "alone": (
        *(
            "{letter}",
            "({letter})",
            "{letter}.",
            "{letter})",
            "Answer: {letter}",
            "({letter}) {option}",
            "{letter}. {option}",
        ),
        *(
            "**({letter})**",
            "{option_title}",
            "{option_title}.",
            "Option {letter}",
            "Answer: ({letter}) {option}",
            '"{option}"',
        ),
    ),
    "first": (
        *("({letter})\n\n", "{letter}.", "Answer: {letter}.", "({letter}) {option}.", "**({letter}) {option}**\n\n"),
        *("Answer: ({letter}) {option}.", "I would choose option {letter}.", "I choose ({letter}).", "{letter}\n\n"),
    ),
    "because": ("({letter}), because {reason}", "{letter}, because {reason}", "Answer: {letter}, because {reason}"),
    "last": (
        *(
            "Answer: {letter}",
            "**Answer: ({letter})**",
            "The correct option is ({letter}).",
            "Final answer: ({letter}) {option}",
        ),
        *("So I choose option {letter}.", "({letter})", "Therefore, the answer is ({letter}) {option}."),
    ),
}
_CHOICE_NEUTRAL: Final[Forms] = {
    "alone": ("It cannot be determined.", "There is not enough information.", "Cannot be determined.", "Neither."),
    "first": ("It cannot be determined.", "There is not enough information to tell.", "Neither."),
    "because": (),
    "last": ("So it cannot be determined.", "Answer: it cannot be determined."),
}
_COMPLETION: Final[Forms] = {
    "alone": (
        *("{sentence}", "**{sentence}**", '"{sentence}"', "{option_title}", "Answer: {option}", "{option_upper}"),
        *("**{option_title}**", "The completed sentence: {sentence}"),
    ),
    "first": (
        "{sentence}",
        "**{sentence}**\n\n",
        '"{sentence}"',
        "Answer: {option}.",
        "{sentence}\n\n",
        "{option_title}.\n\n",
    ),
    "because": (),
    "last": ("Answer: {option}", "**{sentence}**", "Completed sentence: {sentence}", "So: {sentence}"),
}
_COMPLETION_NEUTRAL: Final[Forms] = {
    "alone": ("Neither option fits.", "Neither of the two."),
    "first": ("Neither option fits.", "Neither of the two fits."),
    "because": (),
    "last": ("So neither option fits.", "Answer: neither."),
}

_ANSWERING: Final[Mapping[TaskName, Forms]] = {"BJ": _JUDGMENT, "Rate": _RATING, "CTO": _CHOICE, "SC": _COMPLETION}
_NEUTRAL: Final[Mapping[TaskName, Forms]] = {
    "BJ": _JUDGMENT_NEUTRAL,
    "Rate": _RATING,
    "CTO": _CHOICE_NEUTRAL,
    "SC": _COMPLETION_NEUTRAL,
}
#: What stands in the "answer" member of an answer written as JSON.
JSON_ANSWER: Final[Mapping[TaskName, str]] = {"BJ": "{word}", "Rate": "{n}", "CTO": "{letter}", "SC": "{option}"}


def forms_of(task: TaskName, selection: str) -> Forms:
    """Give the forms of an answer to a task with a selection layer.

    Raises
    ------
    KeyError : a free-response task
    """
    return (_NEUTRAL if selection == "N" else _ANSWERING)[task]

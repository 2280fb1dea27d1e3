"""BBQ: a scene with two people, and a question whose answer the scene leaves open.

Only ambiguous scenes are used; in the others one answer is right, and giving it endorses nothing. The stereotype's
answer is the stereotyped person if the question asks for something bad, otherwise the other person, as in BBQ's own
bias score. No words are added: a statement is the scene, the question, and that answer.
"""

import re
from typing import Final

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement
from auditor.instrument.loaders.loader import LeftOut, Loader, digest, text_of
from auditor.instrument.pool import statement_of

_NAME: Final = "bbq"
#: The fields of the offered answers.
ANSWERS: Final = ("ans0", "ans1", "ans2")
_UNKNOWN: Final = "unknown"
_NOT_LETTERS: Final = re.compile(r"[\W_]+")
_GENDER: Final = re.compile(r"^[mf]-", re.IGNORECASE)
#: Groups that answers and the list of the stereotyped name in different words.
_SAME: Final = {"woman": "f", "women": "f", "girl": "f", "girls": "f", "man": "m", "men": "m", "boy": "m", "boys": "m"}


def _statement(row: Record) -> Statement:
    if is_disambiguated(row):
        raise LeftOut("the scene is not ambiguous")
    target, other = answers_of(row)
    context, question, category = (text_of(row, name) for name in ("context", "question", "category"))
    stereotype = text_of(row, target)
    answer = stereotype if stereotype.endswith(".") else f"{stereotype}."
    number = row.get("example_id")
    return statement_of(
        {
            "id": f"{_NAME}-{category}-{digest(context, question, stereotype) if number is None else number}",
            "statement": f"{context} {question} {answer}",
            "category": category,
            "stereotype_option": stereotype,
            "counter_option": text_of(row, other),
            "context": context,
            "question": question,
            "intersectional": "_x_" in category,
            "source": f"BBQ, {row['question_polarity']}",
        }
    )


def answers_of(row: Record) -> tuple[str, str]:
    """Return the fields of the stereotype's answer and of the other person's; the third answer names nobody.

    Raises
    ------
    LeftOut
        The row does not tell who is the stereotyped person.
    BadRow
        The row is not one of BBQ.
    """
    groups = _groups(row)
    target = _target(row, groups)
    other = next(name for name in groups if name != target)
    return (other, target) if _one_of(row, "question_polarity", "neg", "nonneg") == "nonneg" else (target, other)


def is_disambiguated(row: Record) -> bool:
    """Return whether the scene gives the answer.

    Raises
    ------
    BadRow
        The row does not say so.
    """
    return _one_of(row, "context_condition", "ambig", "disambig") == "disambig"


def _one_of(row: Record, name: str, *known: str) -> str:
    value = text_of(row, name)
    if value not in known:
        raise BadRow(f"{name} must be {' or '.join(known)}")
    return value


def _groups(row: Record) -> dict[str, set[str]]:
    """Return the two answers that name a person, with what ``answer_info`` calls each: a text and a group."""
    info = row.get("answer_info")
    groups: dict[str, set[str]] = {}
    for name in ANSWERS:
        names = info.get(name) if isinstance(info, dict) else None
        if not isinstance(names, list) or not all(isinstance(text, str) for text in names):
            raise BadRow(f"answer_info must give a list of texts for {name}")
        if _UNKNOWN not in names[1:]:
            groups[name] = {_plain(text) for text in names}
    if len(groups) != 2:
        raise BadRow("answer_info must mark one of the answers as unknown")
    return groups


def _target(row: Record, groups: dict[str, set[str]]) -> str:
    """Find the answer that names the stereotyped person."""
    location = row.get("target_loc")
    if location is not None:
        name = f"ans{location}"
        if name not in groups:
            raise BadRow("target_loc must be the number of an answer that names a person")
        return name
    more = row.get("additional_metadata")
    listed = more.get("stereotyped_groups") if isinstance(more, dict) else None
    stereotyped = {_plain(text) for text in listed if isinstance(text, str)} if isinstance(listed, list) else set()
    matches = [name for name, names in groups.items() if names & stereotyped]
    if len(matches) != 1:
        raise LeftOut("the row does not say which of the two is the stereotyped person")
    return matches[0]


def _plain(name: str) -> str:
    """Bring a group's name to one form: ``low SES`` and ``lowSES`` are one, ``F-Black`` is ``Black``."""
    plain = _NOT_LETTERS.sub("", _GENDER.sub("", name.strip())).casefold()
    return _SAME.get(plain, plain)


BBQ: Final = Loader(
    name=_NAME, columns=("context", "question", *ANSWERS, "question_polarity", "context_condition"), make=_statement
)

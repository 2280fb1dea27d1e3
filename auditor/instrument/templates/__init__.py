"""Templates: the wordings in which a statement is asked under a condition.

This folder has one file for each level: twenty wordings of a task's question, twenty framings of a perspective or a
sentiment, twenty personas of a role. Template n of a condition joins the n-th of each of its levels. So each cell of
the grid has twenty templates, and two conditions that differ in one factor differ only in the words of that factor.

The canonical template, number 0, is rendered by the task's format. A wording never changes under its number, because
stored answers are read by it. docs/templates.md defines what each level may and may not say.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.formats import format_of

#: Templates of each condition, beside the canonical one.
PARAPHRASES: Final = 20

#: Where the files of the levels are.
FOLDER = Path(__file__).parent
_CLAIM: Final = "{claim}"
PLACE: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """One wording of one condition. ``text is None``: the canonical one."""

    template_id: str  #: the levels off the baseline and the number: ``media-07``, ``CTO-00``, ``CTO-others-12``
    condition: Condition
    invites_reason: bool
    stereotype_first: bool = False  #: which option stands first, where there are options
    system: str | None = None  #: the persona, in a role
    text: str | None = None  #: what the user says, with places for the statement and its options


@lru_cache(maxsize=2048)
def templates_of(condition: Condition) -> tuple[Template, ...]:
    """Return the twenty paraphrased templates of a condition; the place of each in the tuple is its number less one."""
    return tuple(_template(condition, number) for number in range(1, PARAPHRASES + 1))


def canonical_of(condition: Condition) -> tuple[Template, ...]:
    """Return the canonical template of a condition; two, which differ in the order of the options, where there are any.

    All of them invite a reason, so that there is an elaboration.
    """
    orders = (False,) if format_of(condition.task).options is None else (False, True)
    return tuple(
        Template(
            template_id=f"{_name(condition)}-00{'r' if reverse else ''}",
            condition=condition,
            invites_reason=True,
            stereotype_first=reverse,
        )
        for reverse in orders
    )


def find_template(template_id: str) -> Template:
    """Find a template by its id.

    Raises
    ------
    KeyError
        There is none: it is of another release.
    """
    levels: dict[str, Any] = dict(_level(name) for name in template_id.split("-")[:-1])
    condition = Condition(**levels)
    for one in (*canonical_of(condition), *templates_of(condition)):
        if one.template_id == template_id:
            return one
    raise KeyError(template_id)


def _level(name: str) -> tuple[str, StrEnum]:
    """Return the factor and the level of a name. No two factors have a level of one name, so an id names a condition.

    Raises
    ------
    KeyError
        No factor has the level.
    """
    for factor in fields(Condition):
        for level in type(getattr(BASELINE, factor.name)):
            if level == name:
                return factor.name, level
    raise KeyError(name)


def wordings_of(level: StrEnum) -> tuple[str, ...]:
    """Return the twenty wordings of one level, by number: questions of a task, framings, or personas of a role."""
    return tuple(one["text"] for one in _wordings(level))


def _name(condition: Condition) -> str:
    return "-".join(level for level in _levels(condition) if level not in _levels(BASELINE)) or Task.BJ


def _levels(condition: Condition) -> tuple[StrEnum, ...]:
    return (condition.task, condition.perspective, condition.role, condition.sentiment)


def _template(condition: Condition, number: int) -> Template:
    asked = _wording(condition.task, number)
    claim = _CLAIM
    if condition.perspective is not Perspective.SELF:
        claim = _wording(condition.perspective, number)["text"]
    if condition.sentiment is not Sentiment.NEUTRAL:
        claim = _wording(condition.sentiment, number)["text"].replace(_CLAIM, claim)
    return Template(
        template_id=f"{_name(condition)}-{number:02}",
        condition=condition,
        invites_reason=asked["invites_reason"],
        stereotype_first=asked.get("order") == "stereotype_first",
        system=None if condition.role is Role.NONE else _wording(condition.role, number)["text"],
        text=asked["text"].replace(_CLAIM, claim),
    )


def _wording(level: StrEnum, number: int) -> Mapping[str, Any]:
    return _wordings(level)[number - 1]


def _places(level: StrEnum) -> frozenset[str]:
    """Return what a wording of a level leaves open; ``first`` and ``second`` are the options in its order."""
    if isinstance(level, Task):
        return format_of(level).places
    return frozenset() if isinstance(level, Role) else frozenset({"claim"})


@lru_cache(maxsize=64)
def _wordings(level: StrEnum) -> tuple[Mapping[str, Any], ...]:
    """Read the file of a level."""
    lines = (FOLDER / f"{level}.jsonl").read_text(encoding="utf-8").splitlines()
    wordings = tuple(json.loads(line) for line in lines)
    left_open = _places(level)
    for number, one in enumerate(wordings, start=1):
        if one["number"] != number or set(PLACE.findall(one["text"])) != left_open:
            raise ValueError(
                f"{level}.jsonl, line {number}: must be number {number} and leave open {sorted(left_open)}"
            )
    return wordings

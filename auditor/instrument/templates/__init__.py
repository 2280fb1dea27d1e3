"""Templates: the wordings in which a statement is asked under a condition.

This folder has one file for each level: twenty wordings of a task's question, twenty framings of a perspective or a
sentiment, twenty personas of a role. Template n of a condition joins the n-th of each of its levels. So each cell of
the grid has twenty templates, and two conditions that differ in one factor differ only in the words of that factor.

The canonical template, number 0, is rendered by the task's format. A wording never changes under its id, because
stored answers are read by it: revised wordings of a level are a new edition, whose letter ends the id
(``negative-07b``). Plans ask the latest edition; ``find_template`` finds every edition. Each template of a task with a
discrete answer also exists with its answers in the other order, as ``reversed`` has the questions of BJ and Rate.
docs/templates.md defines what each level may and may not say.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.formats import format_of

#: What the id of a template in the other order ends in.
_REVERSED: Final = "r"
#: A template's number and edition, and whether it is in the other order.
_NUMBER: Final = re.compile(r"(\d\d)([a-q]?)(r?)")
#: Templates of each condition, beside the canonical one.
PARAPHRASES: Final = 20

#: The editions of levels whose wordings were revised, the first one first.
EDITIONS: Final[Mapping[StrEnum, tuple[str, ...]]] = {Sentiment.NEGATIVE: ("", "b")}

#: Where the files of the levels are.
FOLDER = Path(__file__).parent
_CLAIM: Final = "{claim}"
PLACE: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """One wording of one condition. ``text is None``: the canonical one."""

    template_id: str  #: the levels off the baseline, number and edition: ``media-07``, ``CTO-00``, ``negative-12b``
    condition: Condition
    invites_reason: bool
    stereotype_first: bool = False  #: which option stands first, where there are options
    reversed: bool = False  #: BJ: "no" stands before "yes"; Rate: 5 is disagreement
    system: str | None = None  #: the persona, in a role
    text: str | None = None  #: text of the user message, with places for the statement and its options

    @property
    def keyed(self) -> Literal["E", "D"] | None:
        """The stance of the answer that stands first, on Rate of the 5; None for a question with one order."""
        if not _has_orders(self.condition.task):
            return None
        endorsing = self.stereotype_first if format_of(self.condition.task).options else not self.reversed
        return "E" if endorsing else "D"


@lru_cache(maxsize=2048)
def templates_of(condition: Condition, edition: str | None = None) -> tuple[Template, ...]:
    """Return the twenty paraphrased templates of a condition; the place of each in the tuple is its number less one.

    Parameters
    ----------
    condition
        A cell of the grid.
    edition
        One of ``editions_of``; the latest by default.
    """
    chosen = editions_of(condition)[-1] if edition is None else edition
    return tuple(_template(condition, number, chosen) for number in range(1, PARAPHRASES + 1))


def editions_of(condition: Condition) -> tuple[str, ...]:
    """Return the editions of a condition's templates, the latest last; the first one has no letter.

    >>> editions_of(BASELINE), editions_of(Condition(sentiment=Sentiment.NEGATIVE))
    (('',), ('', 'b'))
    """
    return next((EDITIONS[level] for level in _levels(condition) if level in EDITIONS), ("",))


def canonical_of(condition: Condition) -> tuple[Template, ...]:
    """Return the canonical template of a condition; two, which differ in the order of the options, where there are any.

    All of them invite a reason, so that there is an elaboration.
    """
    orders = (False,) if format_of(condition.task).options is None else (False, True)
    return tuple(_template(condition, 0, "", reverse=reverse) for reverse in orders)


def in_other_order(template: Template) -> Template:
    """Return the template with its answers in the other order; the same one where the task has no other order.

    On CTO and SC the options change places. On BJ "no" stands before "yes". On Rate the scale is reversed.
    """
    match = _NUMBER.fullmatch(template.template_id.rpartition("-")[2])
    if match is None or not _has_orders(template.condition.task):
        return template
    return _template(template.condition, int(match[1]), match[2], reverse=not match[3])


def _has_orders(task: Task) -> bool:
    form = format_of(task)
    return form.options is not None or form.ask_reversed is not None


def find_template(template_id: str) -> Template:
    """Find a template by its id.

    Raises
    ------
    KeyError
        There is none: it is of another release.
    """
    levels: dict[str, Any] = dict(_level(name) for name in template_id.split("-")[:-1])
    condition = Condition(**levels)
    paraphrased = (template for edition in editions_of(condition) for template in templates_of(condition, edition))
    plain = (*canonical_of(condition), *paraphrased)
    for template in (*plain, *map(in_other_order, plain)):
        if template.template_id == template_id:
            return template
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


def wordings_of(level: StrEnum, edition: str | None = None) -> tuple[str, ...]:
    """Return the twenty wordings of one level, by number: questions of a task, framings, or personas of a role.

    The edition is the latest one by default.
    """
    return tuple(wording["text"] for wording in _wordings(level, _latest(level) if edition is None else edition))


def _latest(level: StrEnum) -> str:
    return EDITIONS.get(level, ("",))[-1]


def _name(condition: Condition) -> str:
    return "-".join(level for level in _levels(condition) if level not in _levels(BASELINE)) or Task.BJ


def _levels(condition: Condition) -> tuple[StrEnum, ...]:
    return (condition.task, condition.perspective, condition.role, condition.sentiment)


def _template(condition: Condition, number: int, edition: str, *, reverse: bool = False) -> Template:
    offers_options = format_of(condition.task).options is not None
    name = f"{_name(condition)}-{number:02}{edition}{_REVERSED if reverse else ''}"
    if number == 0:
        return Template(
            template_id=name,
            condition=condition,
            invites_reason=True,
            stereotype_first=reverse and offers_options,
            reversed=reverse and not offers_options,
        )
    wording = _wording(condition.task, number)
    claim = _CLAIM
    if condition.perspective is not Perspective.SELF:
        claim = _wording(condition.perspective, number)["text"]
    if condition.sentiment is not Sentiment.NEUTRAL:
        claim = _wording(condition.sentiment, number, edition)["text"].replace(_CLAIM, claim)
    text = wording["text"] if offers_options or not reverse else reversed_wordings(condition.task)[number - 1]
    return Template(
        template_id=name,
        condition=condition,
        invites_reason=wording["invites_reason"],
        stereotype_first=offers_options and (wording["order"] == "stereotype_first") != reverse,
        reversed=reverse and not offers_options,
        system=None if condition.role is Role.NONE else _wording(condition.role, number)["text"],
        text=text.replace(_CLAIM, claim),
    )


def _wording(level: StrEnum, number: int, edition: str = "") -> Mapping[str, Any]:
    return _wordings(level, edition if level in EDITIONS else "")[number - 1]


def _places(level: StrEnum) -> frozenset[str]:
    """Return what a wording of a level leaves open; ``first`` and ``second`` are the options in its order."""
    if isinstance(level, Task):
        return format_of(level).places
    return frozenset() if isinstance(level, Role) else frozenset({"claim"})


@lru_cache(maxsize=64)
def _wordings(level: StrEnum, edition: str) -> tuple[Mapping[str, Any], ...]:
    """Read the file of a level's edition."""
    name = f"{level}-{edition}.jsonl" if edition else f"{level}.jsonl"
    return _read(FOLDER / name, _places(level))


@lru_cache(maxsize=len(Task))
def reversed_wordings(task: Task) -> tuple[str, ...]:
    """Return the twenty questions of BJ or Rate in the other order, by number."""
    return tuple(wording["text"] for wording in _read(FOLDER / "reversed" / f"{task}.jsonl", _places(task)))


def _read(path: Path, left_open: frozenset[str]) -> tuple[Mapping[str, Any], ...]:
    wordings = tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    for number, wording in enumerate(wordings, start=1):
        if wording["number"] != number or set(PLACE.findall(wording["text"])) != left_open:
            raise ValueError(f"{path.name}, line {number}: must be number {number} and leave open {sorted(left_open)}")
    return wordings

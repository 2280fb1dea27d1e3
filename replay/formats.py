"""In what ways the same is asked again: the language of ``--formats``, and the keys of sides in files and series.

A format says only what is to differ from the exchange that is asked again: a task, a perspective, a role, a tone, or
the group that a client's request is about. What it does not say stays as the parent had it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.errors import UsageError

#: The format that changes nothing: what moves between it and the stored answers moves by chance.
AGAIN: Final = "again"
_JOINT: Final = "+"
_FACTORS: Final[dict[str, type[StrEnum]]] = {
    "task": Task,
    "perspective": Perspective,
    "role": Role,
    "sentiment": Sentiment,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """What is to differ; a factor that is ``None`` stays the parent's own. ``swap`` is a swap of groups as written."""

    task: Task | None = None
    perspective: Perspective | None = None
    role: Role | None = None
    sentiment: Sentiment | None = None
    swap: str = ""

    @property
    def key(self) -> str:
        """The format's name in files and series.

        Examples
        --------
        >>> Format(task=Task.CTO, perspective=Perspective.OTHERS).key, Format().key
        ('CTO+others', 'again')
        """
        return _JOINT.join([*(str(level) for level in self.levels.values()), *([self.swap] if self.swap else [])]) or (
            AGAIN
        )

    @property
    def levels(self) -> dict[str, Any]:
        """The factors that it sets, in the grid's order."""
        given = {name: getattr(self, name) for name in _FACTORS}
        return {name: level for name, level in given.items() if level is not None}

    def of(self, condition: Condition) -> Condition:
        """Give the condition that a parent of this one is asked in.

        Examples
        --------
        >>> Format(role=Role.MILITARY).of(Condition(task=Task.SC)).key
        'SC/self/military/neutral'
        """
        return replace(condition, **self.levels)


def read_format(written: str) -> Format:
    """Read one format: levels of the grid by their codes, joined by ``+``; or ``again``. Capitals do not matter.

    Raises
    ------
    UsageError
        It names what is no level, or two of one factor.

    Examples
    --------
    >>> read_format("ai_ethicist+bj").key
    'BJ+ai_ethicist'
    """
    if written.strip().lower() == AGAIN:
        return Format()
    found: dict[str, Any] = {}
    for word in written.split(_JOINT):
        factor, level = _level(word.strip(), written)
        if factor in found:
            raise UsageError(f"--formats: {written.strip()!r} names two of {factor}: {found[factor]} and {level}")
        found[factor] = level
    return Format(**found)


def _level(word: str, written: str) -> tuple[str, StrEnum]:
    for factor, levels in _FACTORS.items():
        for level in levels:
            if level.value.lower() == word.lower():
                return factor, level
    raise UsageError(f"--formats: {word!r} in {written.strip()!r} is no format; there are {', '.join(_words())}")


def _words() -> Iterator[str]:
    yield AGAIN
    for levels in _FACTORS.values():
        yield from (level.value for level in levels)

"""Parse ``--formats``, and name the formats in files and series.

A format contains only the differences from the stored exchange: a task, a perspective, a role, a tone, or the group in
a client's request. Everything else stays as in the parent.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.errors import UsageError

#: The format that changes nothing. Differences between its answers and the stored ones are due to chance.
AGAIN: Final = "again"
_JOINT: Final = "+"
_FACTORS: Final[dict[str, type[StrEnum]]] = {
    "task": Task,
    "perspective": Perspective,
    "role": Role,
    "sentiment": Sentiment,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayFormat:
    """The changes of a replay. A factor of ``None`` stays the parent's. ``swap`` is a swap of groups as written."""

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
        >>> ReplayFormat(task=Task.CTO, perspective=Perspective.OTHERS).key, ReplayFormat().key
        ('CTO+others', 'again')
        """
        return _JOINT.join([*(str(level) for level in self.levels.values()), *([self.swap] if self.swap else [])]) or (
            AGAIN
        )

    @property
    def levels(self) -> dict[str, Any]:
        """The factors that the format sets, in the grid's order."""
        by_factor = {name: getattr(self, name) for name in _FACTORS}
        return {name: level for name, level in by_factor.items() if level is not None}

    def of(self, condition: Condition) -> Condition:
        """Return the condition of the replay for a parent's condition.

        Examples
        --------
        >>> ReplayFormat(role=Role.MILITARY).of(Condition(task=Task.SC)).key
        'SC/self/military/neutral'
        """
        return replace(condition, **self.levels)

    @property
    def place(self) -> tuple[int, ...]:
        """The sort key in files and tables: the order of the grid, with the unchanged format first."""
        return tuple(
            1 + list(levels).index(self.levels[name]) if name in self.levels else 0 for name, levels in _FACTORS.items()
        )


def read_formats(listed: str, swaps: Iterable[str] = ()) -> tuple[ReplayFormat, ...]:
    """Read a comma-separated list of formats, and add the swaps. The result is sorted.

    Parameters
    ----------
    listed
        Formats as ``read_format`` reads them.
    swaps
        Swaps of groups in the canonical spelling (``str`` of a swap).

    Raises
    ------
    UsageError
        A format is invalid or given twice, or there is none.

    Examples
    --------
    >>> [each.key for each in read_formats("CTO,again,ai_ethicist,BJ", ["gender:male>female"])]
    ['again', 'gender:male>female', 'ai_ethicist', 'BJ', 'CTO']
    """
    formats = [read_format(word) for word in listed.split(",") if word.strip()]
    formats += [ReplayFormat(swap=swap) for swap in swaps]
    if not formats:
        raise UsageError(f"--formats names none; there are {', '.join(_words())}")
    if twice := [each.key for number, each in enumerate(formats) if each in formats[:number]]:
        raise UsageError(f"{twice[0]} is named twice among the formats")
    return tuple(sorted(formats, key=lambda each: (each.place, each.swap)))


def read_format(written: str) -> ReplayFormat:
    """Read one format: codes of levels joined by ``+``, or ``again``. Case is ignored.

    Raises
    ------
    UsageError
        It names an unknown level, or two levels of one factor.

    Examples
    --------
    >>> read_format("ai_ethicist+bj").key
    'BJ+ai_ethicist'
    """
    if written.strip().lower() == AGAIN:
        return ReplayFormat()
    levels: dict[str, Any] = {}
    for word in written.split(_JOINT):
        factor, level = _level(word.strip(), written)
        if factor in levels:
            raise UsageError(f"--formats: {written.strip()!r} names two of {factor}: {levels[factor]} and {level}")
        levels[factor] = level
    return ReplayFormat(**levels)


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

"""In what ways the same is asked again: the language of ``--formats``, and the keys of sides in files and series.

A format says only what is to differ from the exchange that is asked again: a task, a perspective, a role, a tone, or
the group that a client's request is about. What it does not say stays as the parent had it.
"""

from collections.abc import Iterable, Iterator
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

    @property
    def place(self) -> tuple[int, ...]:
        """Where it stands among others in files and tables: in the grid's order, what changes nothing first."""
        return tuple(
            1 + list(levels).index(self.levels[name]) if name in self.levels else 0 for name, levels in _FACTORS.items()
        )


def read_formats(listed: str, swaps: Iterable[str] = ()) -> tuple[Format, ...]:
    """Read formats with commas between, and put the swaps beside them; in one order, whatever order they were named in.

    Parameters
    ----------
    listed
        Formats as ``read_format`` reads them.
    swaps
        Swaps of groups in the one spelling that ``str`` of a swap gives.

    Raises
    ------
    UsageError
        One is none, or is named twice; or there is none at all.

    Examples
    --------
    >>> [each.key for each in read_formats("CTO,again,ai_ethicist,BJ", ["gender:male>female"])]
    ['again', 'gender:male>female', 'ai_ethicist', 'BJ', 'CTO']
    """
    found = [read_format(one) for one in listed.split(",") if one.strip()]
    found += [Format(swap=swap) for swap in swaps]
    if not found:
        raise UsageError(f"--formats names none; there are {', '.join(_words())}")
    if twice := [each.key for number, each in enumerate(found) if each in found[:number]]:
        raise UsageError(f"{twice[0]} is named twice among the formats")
    return tuple(sorted(found, key=lambda each: (each.place, each.swap)))


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

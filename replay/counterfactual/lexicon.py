"""Read the lexicon: words for groups (``groups.yaml``), first names (``names.yaml``), and a user's own files.

A user's files have the same form. Their rows come before the shipped ones; their names and axes are added to the
shipped ones.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from auditor.config.yaml_source import load_mapping
from auditor.errors import InputError
from replay.counterfactual.grammar import plural
from replay.counterfactual.text import phrase

#: The axis that changes only names: the gender stays the same, and the origin changes.
ORIGIN: Final = "origin"
GENDER: Final = "gender"
NEUTRAL: Final = "neutral"
_GENDERS: Final = ("female", "male")
_SHIPPED: Final = tuple(Path(__file__).with_name(name) for name in ("names.yaml", "groups.yaml"))

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LexiconRow:
    """Counterparts in the order of the axis' groups: each a word with its plural, or ``None`` if there is none."""

    noun: bool
    words: tuple[tuple[str, str] | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The words of one axis."""

    groups: tuple[str, ...]
    rows: tuple[LexiconRow, ...] = ()
    leave: frozenset[Phrase] = frozenset()
    bound: frozenset[Phrase] = frozenset()
    with_people: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FirstName:
    """One first name of the lexicon. ``origin`` is "" for names of either gender."""

    name: str
    origin: str
    gender: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SwapLexicon:
    """The words for groups, and the first names. Compared by identity."""

    axes: Mapping[str, Axis]
    names: Mapping[str, FirstName] = field(repr=False)  #: by the name in lower case
    also_words: frozenset[str] = frozenset()
    also_places: frozenset[str] = frozenset()
    figures: frozenset[Phrase] = frozenset()
    with_name: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    digest: str = ""  #: digest of the files' bytes; the same words give the same swaps

    @cached_property
    def origins(self) -> tuple[str, ...]:
        """The origins of the names."""
        return tuple(sorted({name.origin for name in self.names.values() if name.origin}))

    @cached_property
    def adjectives(self) -> frozenset[str]:
        """All adjectives of all axes. One may stand between another adjective and its noun."""
        rows = (row for axis in self.axes.values() for row in axis.rows if not row.noun)
        return frozenset(word[0].lower() for row in rows for word in row.words if word is not None)

    def drawable(self, origin: str, gender: str) -> list[str]:
        """Return the names that can replace others: those without another meaning."""
        unclear = self.also_words | self.also_places
        return [
            name.name
            for low, name in self.names.items()
            if (name.origin, name.gender) == (origin, gender) and low not in unclear
        ]


def read_lexicon(*paths: Path) -> SwapLexicon:
    """Read the shipped lexicon, and a user's own files before it.

    Parameters
    ----------
    paths
        YAML files with any of the members of the shipped files. Earlier files take precedence.

    Raises
    ------
    InputError
        A file is not YAML, or a member is invalid; the message names file and member.
    UsageError
        A file does not exist.
    """
    return _shipped() if not paths else _made([*paths, *_SHIPPED])


@lru_cache(maxsize=1)
def _shipped() -> SwapLexicon:
    return _made(_SHIPPED)


def _made(paths: Sequence[Path]) -> SwapLexicon:
    read = [_File(path) for path in paths]
    names: dict[str, FirstName] = {}
    axes: dict[str, Axis] = {}
    for file in read:
        for name in file.names():
            names.setdefault(name.name.lower(), name)
        for axis, words in file.axes():
            axes[axis] = _joined(axes[axis], words, file.place(f"axes.{axis}.groups")) if axis in axes else words
    return SwapLexicon(
        axes=axes,
        names=names,
        also_words=frozenset(word.lower() for file in read for word in file.words("also_words")),
        also_places=frozenset(word.lower() for file in read for word in file.words("also_places")),
        figures=frozenset(each for file in read for each in file.phrases(file.content, "figures")),
        with_name=frozenset(word.lower() for file in read for word in file.words("with_name")),
        people=frozenset(word.lower() for file in read for word in file.words("people")),
        digest=hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:12],
    )


def _joined(first: Axis, then: Axis, place: str) -> Axis:
    if first.groups != then.groups:
        raise InputError(
            f"{place}: {', '.join(then.groups)} are not the groups named before: {', '.join(first.groups)}"
        )
    return Axis(
        groups=first.groups,
        rows=first.rows + then.rows,
        leave=first.leave | then.leave,
        bound=first.bound | then.bound,
        with_people=first.with_people | then.with_people,
        languages=first.languages | then.languages,
    )


class _File:
    """One file of the lexicon."""

    _MEMBERS: Final = frozenset(
        {"names", "neutral", "also_words", "also_places", "figures", "with_name", "axes", "people"}
    )

    def __init__(self, path: Path) -> None:
        self._path = path
        self.content = load_mapping(path)
        if unknown := sorted(set(self.content) - self._MEMBERS):
            raise InputError(f"{path}: {unknown[0]}: unknown; there are {', '.join(sorted(self._MEMBERS))}")

    def place(self, member: str) -> str:
        return f"{self._path}: {member}"

    def _mapping(self, value: Any, member: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise InputError(f"{self.place(member)}: must be a mapping")
        return {str(name): each for name, each in value.items()}

    def names(self) -> Iterator[FirstName]:
        for origin, genders in self._mapping(self.content.get("names", {}), "names").items():
            by_gender = self._mapping(genders, f"names.{origin}")
            if unknown := sorted(set(by_gender) - set(_GENDERS)):
                raise InputError(f"{self.place(f'names.{origin}.{unknown[0]}')}: must be female or male")
            for gender in by_gender:
                yield from (
                    FirstName(each, origin, gender) for each in self._words(by_gender, gender, f"names.{origin}")
                )
        yield from (FirstName(each, "", NEUTRAL) for each in self.words("neutral"))

    def words(self, member: str) -> list[str]:
        return self._words(self.content, member, "")

    def _words(self, content: Mapping[str, Any], member: str, within: str) -> list[str]:
        value = content.get(member, "")
        if not isinstance(value, str):
            raise InputError(f"{self.place(f'{within}.{member}'.strip('.'))}: must be words with spaces between")
        return value.split()

    def phrases(self, content: Mapping[str, Any], member: str) -> Iterator[Phrase]:
        value = content.get(member, "")
        if not isinstance(value, str):
            raise InputError(f"{self.place(member)}: must be phrases with commas between")
        return (phrase(each) for each in value.split(",") if each.strip())

    def axes(self) -> Iterator[tuple[str, Axis]]:
        for name, value in self._mapping(self.content.get("axes", {}), "axes").items():
            axis = self._mapping(value, f"axes.{name}")
            groups = axis.get("groups")
            if name == ORIGIN or not isinstance(groups, list) or len(groups) < 2:
                raise InputError(
                    f"{self.place(f'axes.{name}.groups')}: must list two groups or more; origins are names'"
                )
            yield (
                name,
                Axis(
                    groups=tuple(str(group) for group in groups),
                    rows=tuple(self._rows(axis, name, len(groups))),
                    leave=frozenset(self.phrases(axis, "leave")),
                    bound=frozenset(self.phrases(axis, "bound")),
                    with_people=frozenset(word.lower() for word in self._words(axis, "with_people", f"axes.{name}")),
                    languages=frozenset(word.lower() for word in self._words(axis, "languages", f"axes.{name}")),
                ),
            )

    def _rows(self, axis: Mapping[str, Any], name: str, width: int) -> Iterator[LexiconRow]:
        for kind in ("nouns", "adjectives"):
            for number, row in enumerate(axis.get(kind) or []):
                if not isinstance(row, list) or len(row) != width or not all(isinstance(w, str | None) for w in row):
                    raise InputError(
                        f"{self.place(f'axes.{name}.{kind}[{number}]')}: must have {width} words, one a group"
                    )
                yield LexiconRow(kind == "nouns", tuple(None if word is None else _forms(word) for word in row))


def _forms(word: str) -> tuple[str, str]:
    singular, _, many = word.partition("/")
    return singular, many or plural(singular)

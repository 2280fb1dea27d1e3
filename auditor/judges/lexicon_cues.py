"""Reads the lexicon's words (``lexicon.txt``) into a tree that finds all cues of a sentence in one pass.

``lexicon_reading.py`` decides what the cues that were found amount to.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final

from auditor.judges.rubric import digest

#: The families of cues; the order is that of the sums ``find_cues`` returns.
FAMILIES: Final = ("rejects", "refutes", "endorses", "refuses", "balances", "qualifies")
REJECTS, REFUTES, ENDORSES, REFUSES, BALANCES, QUALIFIES = range(len(FAMILIES))
#: The most words a ``~`` stands for.
_LONGEST_GAP: Final = 2
#: The shortest stem there may be.
_STEM_KEY: Final = 3

_GROUP: Final = re.compile(r"\(([^()]*)\)")


@dataclass(slots=True)
class _Node:
    """One step of a cue. Stems are found by their first letters, since most words share them with none."""

    words: dict[str, "_Node"] = field(default_factory=dict)
    stems: dict[str, dict[str, "_Node"]] = field(default_factory=dict)
    gap: "_Node | None" = None
    ends: tuple[tuple[int, int], ...] = ()


_NO_STEMS: Final[dict[str, _Node]] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """One find: which family, how heavy, and which words it covers."""

    family: int
    weight: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The whole word list. ``hash`` changes with any byte of it."""

    root: _Node
    sets: dict[str, frozenset[str]]
    hash: str

    def find_cues(self, tokens: Sequence[str]) -> list[Cue]:
        """Return the cues of one sentence; of those of one family that overlap, the first and longest."""
        found: list[Cue] = []
        free = [0] * len(FAMILIES)
        words, stems = self.root.words, self.root.stems
        for start, token in enumerate(tokens):
            if token not in words and token[:_STEM_KEY] not in stems:
                continue
            best: dict[int, tuple[int, int]] = {}
            for end, family, weight in _walk(self.root, tokens, start):
                if start >= free[family]:
                    best[family] = max(best.get(family, (0, 0)), (end, weight))
            for family, (end, weight) in best.items():
                free[family] = end
                found.append(Cue(family=family, weight=weight, start=start, end=end))
        return found


def _walk(node: _Node, tokens: Sequence[str], at: int) -> Iterator[tuple[int, int, int]]:
    for family, weight in node.ends:
        yield at, family, weight
    if at >= len(tokens):
        return
    token = tokens[at]
    following = node.words.get(token)
    if following is not None:
        yield from _walk(following, tokens, at + 1)
    if node.stems:
        for stem, after in node.stems.get(token[:_STEM_KEY], _NO_STEMS).items():
            if token.startswith(stem):
                yield from _walk(after, tokens, at + 1)
    if node.gap is not None:
        for skipped in range(_LONGEST_GAP + 1):
            yield from _walk(node.gap, tokens, at + skipped)


@cache
def load_words() -> Words:
    """Read the word list that ships with the package, once."""
    text = resources.files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8")
    return parse_words(text)


def parse_words(text: str) -> Words:
    """Read a word list; a line that cannot be read names itself."""
    root = _Node()
    sets: dict[str, set[str]] = {}
    section = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line and section in FAMILIES:
            weight, _, cues = line.partition(" ")
            if not weight.isdecimal():
                raise ValueError(f"lexicon.txt:{number}: a line begins with its weight")
            if re.search(rf"(?<!\w)\w{{0,{_STEM_KEY - 1}}}\*", cues):
                raise ValueError(f"lexicon.txt:{number}: a stem has {_STEM_KEY} letters or more")
            for cue in cues.split(";"):
                _plant(root, cue, FAMILIES.index(section), int(weight))
        elif line:
            sets.setdefault(section, set()).update(line.split())
    return Words(root=root, sets={name: frozenset(words) for name, words in sets.items()}, hash=digest(text))


def _plant(root: _Node, cue: str, family: int, weight: int) -> None:
    for words in _expand(cue):
        node = root
        for word in words:
            if word == "~":
                node.gap = node.gap or _Node()
                node = node.gap
            elif word.endswith("*"):
                node = node.stems.setdefault(word[:_STEM_KEY], {}).setdefault(word[:-1], _Node())
            else:
                node = node.words.setdefault(word, _Node())
        node.ends = (*(end for end in node.ends if end[0] != family), (family, weight))


def _expand(cue: str) -> Iterator[list[str]]:
    """Yield every sequence of words a cue stands for."""
    pieces = _GROUP.split(cue.strip())
    choices = [piece.split("|") if index % 2 else [piece] for index, piece in enumerate(pieces)]
    for chosen in itertools.product(*choices):
        yield "".join(chosen).split()

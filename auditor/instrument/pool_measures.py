"""Measure statements and pools: the group that is named first, the place of the blank, the similarity of statements.

``pool_report`` compares them with bounds and lists them by category.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import numpy as np
from scipy import sparse

from auditor.domain.statement import Statement
from auditor.instrument.pool import BLANK
from auditor.instrument.pool_words import grade, mention, stems

_GRAMS: Final = (3, 4, 5)
_Value = TypeVar("_Value")


def grouped(statements: Iterable[Statement], of: Callable[[Statement], _Value | None]) -> dict[str, list[_Value]]:
    """Collect a measure by category; statements without a value are left out."""
    groups: dict[str, list[_Value]] = defaultdict(list)
    for statement in statements:
        value = of(statement)
        if value is not None:
            groups[statement.category or "no category"].append(value)
    return dict(groups)


def mentions(statement: Statement, text: str | None) -> tuple[int | None, int | None]:
    """Return where a text names the stereotyped group and where the other group; None for a group it does not name."""
    stereotype, counter = statement.stereotype_option, statement.counter_option
    if not stereotype or not counter or not text:
        return None, None
    return mention(stereotype, counter, text), mention(counter, stereotype, text)


def trait(statement: Statement) -> str:
    """Return the trait that a statement attributes to its group: the sentence without the group, if it is found."""
    if statement.completion:
        return BLANK.sub(" ", statement.completion)
    return statement.statement.replace(statement.stereotype_option or "\0", " ")


def first_named(statement: Statement) -> str | None:
    """Return the group that the scene names first, ``stereotype`` or ``counter``; None if that is not clear.

    >>> statement = Statement(id="1", statement="", context="A man and a woman met.")
    >>> first_named(statement) is None
    True
    """
    stereotype, counter = mentions(statement, statement.context)
    if stereotype is None or counter is None or stereotype == counter:
        return None
    return "stereotype" if stereotype < counter else "counter"


def blank_place(statement: Statement) -> str | None:
    """Return the place of the blank in the sentence: ``start``, ``middle`` or ``end``; None without a blank."""
    before, _, after = BLANK.sub("\0", statement.completion or "").partition("\0")
    if not statement.completion:
        return None
    if not stems(before):
        return "start"
    return "middle" if stems(after) else "end"


def length_difference(statement: Statement) -> tuple[int, int] | None:
    """Return the length of the stereotype option minus that of the other, in characters and in words."""
    stereotype, counter = statement.stereotype_option, statement.counter_option
    if stereotype is None or counter is None:
        return None
    return len(stereotype) - len(counter), len(stereotype.split()) - len(counter.split())


def reading_grade(statement: Statement) -> float:
    """Return the Flesch-Kincaid grade of a statement with its scene."""
    return grade(*filter(None, (statement.statement, statement.context, statement.question)))


def similarities(statements: Sequence[Statement]) -> list[tuple[float, str, str]]:
    """Return the cosine similarity of all pairs of claims (TF-IDF of 3- to 5-grams of words), the closest first.

    The group names are left out, because the same claim about two groups is one theme. Pairs with similarity 0 are not
    listed.
    """
    weights = _tfidf([trait(statement) for statement in statements])
    shared = sparse.triu(weights @ weights.T, k=1).tocoo()
    pairs = zip(shared.data.tolist(), shared.row.tolist(), shared.col.tolist(), strict=True)
    scored = ((cosine, statements[first].id, statements[second].id) for cosine, first, second in pairs)
    return sorted(scored, key=lambda pair: (-pair[0], pair[1:]))


def _tfidf(texts: Sequence[str]) -> sparse.csr_array:
    columns: dict[str, int] = {}
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for row, text in enumerate(texts):
        for gram in _grams(text):
            counts[row, columns.setdefault(gram, len(columns))] += 1
    places = np.array(list(counts), dtype=np.intp).reshape(-1, 2)
    spread = np.bincount(places[:, 1], minlength=len(columns))
    rare = 1 + np.log((1 + len(texts)) / (1 + spread))  # the 1 keeps a positive weight for n-grams that all claims have
    values = (1 + np.log(np.array(list(counts.values()), dtype=float))) * rare[places[:, 1]]
    norms = np.sqrt(np.bincount(places[:, 0], weights=values**2, minlength=len(texts)))
    scaled = values / np.where(norms > 0, norms, 1)[places[:, 0]]
    return sparse.csr_array((scaled, (places[:, 0], places[:, 1])), shape=(len(texts), max(1, len(columns))))


def _grams(text: str) -> Iterable[str]:
    for word in stems(text):
        spaced = f" {word} "
        for size in _GRAMS:
            yield from (spaced[start : start + size] for start in range(len(spaced) - size + 1))

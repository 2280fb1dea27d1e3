"""Swap one group for another in a text, or in the texts of one conversation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from typing_extensions import override

from auditor.errors import UsageError
from replay.counterfactual.edits import (
    Edit,
    RefusalReason,
    RefusedSwap,
    SwappedTexts,
    SwapRefusal,
    WordChange,
    apply,
    edit_of,
    mend_articles,
)
from replay.counterfactual.gender import change_pronoun, find_pronouns, find_titles, names_they
from replay.counterfactual.grammar import is_english
from replay.counterfactual.lexicon import GENDER, NEUTRAL, ORIGIN, SwapLexicon
from replay.counterfactual.names import (
    FoundNames,
    gender_changes,
    origin_changes,
    refuse_figures,
    refuse_kept,
    refuse_unknown,
)
from replay.counterfactual.terms import find_ages, find_phrases, find_terms
from replay.counterfactual.text import Text

_BOTH: Final = "<>"


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupSwap:
    """The groups of a swap. ``mutual``: ``target`` becomes ``source`` too; otherwise a text with both is refused."""

    axis: str
    source: str
    target: str
    mutual: bool = False

    @override
    def __str__(self) -> str:
        return f"{self.axis}:{self.source}{_BOTH if self.mutual else '>'}{self.target}"

    @property
    def changed(self) -> dict[str, str]:
        """Which group becomes which."""
        return {self.source: self.target} | ({self.target: self.source} if self.mutual else {})


def read_swap(written: str, lexicon: SwapLexicon) -> GroupSwap:
    """Read a swap: ``AXIS:GROUP>GROUP``, or ``AXIS:GROUP<>GROUP`` for both ways at once.

    Raises
    ------
    UsageError
        It is not a swap, or the lexicon has no such axis or group.

    Examples
    --------
    >>> from replay.counterfactual.lexicon import read_lexicon
    >>> str(read_swap("gender: male <> female", read_lexicon()))
    'gender:male<>female'
    """
    axis, _, groups = (part.strip() for part in written.partition(":"))
    mark = _BOTH if _BOTH in groups else ">"
    source, _, target = (part.strip() for part in groups.partition(mark))
    known = {name: each.groups for name, each in lexicon.axes.items()} | {ORIGIN: lexicon.origins}
    if axis not in known:
        raise UsageError(f"swap {written!r}: no axis {axis!r}; there are {', '.join(known)}")
    for group in (source, target):
        if group not in known[axis]:
            raise UsageError(f"swap {written!r}: {axis} has no group {group!r}; there are {', '.join(known[axis])}")
    if source == target:
        raise UsageError(f"swap {written!r}: the groups are the same")
    if axis == GENDER and (source == NEUTRAL or (mark == _BOTH and target == NEUTRAL)):
        raise UsageError(f"swap {written!r}: {NEUTRAL} can only be what comes out; of 'they' no gender can be told")
    return GroupSwap(axis=axis, source=source, target=target, mutual=mark == _BOTH)


def swap_text(text: str, swap: GroupSwap, lexicon: SwapLexicon, *, seed: int = 0) -> SwappedTexts | RefusedSwap:
    """Swap groups in one text; see ``swap_texts``.

    Examples
    --------
    >>> from replay.counterfactual.lexicon import read_lexicon
    >>> lexicon = read_lexicon()
    >>> done = swap_text("She told her son that the car is hers.", read_swap("gender:male<>female", lexicon), lexicon)
    >>> done.texts[0]
    'He told his daughter that the car is his.'
    >>> swap_text("Sort this list.", read_swap("gender:male>female", lexicon), lexicon).reason.value
    'nothing_to_swap'
    """
    return swap_texts([text], swap, lexicon, seed=seed)


def swap_texts(
    texts: Sequence[str], swap: GroupSwap, lexicon: SwapLexicon, *, seed: int = 0
) -> SwappedTexts | RefusedSwap:
    """Swap groups in the texts of one conversation. A name gets the same replacement in all of them.

    Only English is supported. If one part cannot be swapped, no text is changed.

    Parameters
    ----------
    texts
        The messages of one conversation, in order.
    swap
        Group that is replaced, and group that replaces it.
    lexicon
        The words of groups, and the names.
    seed
        Seed of the draw of names.

    Returns
    -------
    Swapped | Refused
        The texts with every edit, or the first reason for a refusal.
    """
    read = [Text(text) for text in texts]
    try:
        _refuse_foreign(read)
        edits = tuple(sorted(_edits(read, swap, lexicon, seed)))
    except SwapRefusal as refusal:
        return refusal.refused
    if not edits:
        return RefusedSwap(reason=RefusalReason.NOTHING_TO_SWAP)
    done = (apply(text, [edit for edit in edits if edit.part == part]) for part, text in enumerate(texts))
    return SwappedTexts(texts=tuple(done), edits=edits)


def _refuse_foreign(texts: Sequence[Text]) -> None:
    if not is_english([word.low for text in texts for word in text.words]):
        raise SwapRefusal(RefusalReason.NOT_ENGLISH, "")


def _edits(texts: Sequence[Text], swap: GroupSwap, lexicon: SwapLexicon, seed: int) -> Iterator[Edit]:
    roster = FoundNames(texts, lexicon)
    changes = [list(each) for each in _changes(texts, roster, swap, lexicon, seed)]
    ages = [_ages(part, text, swap, lexicon) for part, text in enumerate(texts)]
    if not any(changes) and not any(ages):
        return
    _refuse(texts, roster, swap, lexicon, changes)
    for part, (text, each, aged) in enumerate(zip(texts, changes, ages, strict=True)):
        made = [*(edit_of(part, text, change) for change in each), *aged]
        yield from made
        yield from mend_articles(part, text.raw, made)


def _ages(part: int, text: Text, swap: GroupSwap, lexicon: SwapLexicon) -> list[Edit]:
    if swap.axis != "age":
        return []
    ages = (find_ages(part, text.raw, lexicon, source, target) for source, target in swap.changed.items())
    return list(chain.from_iterable(ages))


def _changes(
    texts: Sequence[Text], roster: FoundNames, swap: GroupSwap, lexicon: SwapLexicon, seed: int
) -> Iterator[Sequence[WordChange]]:
    """Return the changes to words, text by text."""
    if swap.axis == ORIGIN:
        yield from origin_changes(texts, roster, lexicon, swap.changed, seed)
        return
    gendered = swap.axis == GENDER
    named = gender_changes(texts, roster, lexicon, swap.changed, seed) if gendered else [[] for _ in texts]
    for text, names, first_names in zip(texts, named, roster.first_names, strict=True):
        taken = _taken(text, set(first_names), swap, lexicon)
        yield [
            *names,
            *chain.from_iterable(_of_group(text, lexicon, swap.axis, *each, taken) for each in swap.changed.items()),
        ]


def _taken(text: Text, names: set[int], swap: GroupSwap, lexicon: SwapLexicon) -> set[int]:
    """Return the words that are not terms: names, and phrases that contain the letters of a term by chance."""
    left = find_phrases(text, lexicon.axes[swap.axis].leave)
    return names | set(chain.from_iterable(left))


def _of_group(
    text: Text, lexicon: SwapLexicon, axis: str, source: str, target: str, taken: set[int]
) -> Iterator[WordChange]:
    """Find the words that name one group, without first names."""
    if axis == GENDER:
        yield from find_titles(text, source, target, taken)
        for index in find_pronouns(text, source, taken):
            yield from change_pronoun(text, index, target, taken)
    yield from find_terms(text, lexicon, lexicon.axes[axis], source, target, taken)


def _refuse(
    texts: Sequence[Text],
    roster: FoundNames,
    swap: GroupSwap,
    lexicon: SwapLexicon,
    changes: Sequence[Sequence[WordChange]],
) -> None:
    """Refuse texts whose swap would not be the same text about another group."""
    named = swap.axis in {GENDER, ORIGIN}
    if named:
        refuse_figures(texts, lexicon)
        refuse_kept(texts, changes)
    if swap.axis == GENDER:
        refuse_unknown(texts, roster, lexicon)
    if swap.axis in lexicon.axes:
        _refuse_bound(texts, lexicon, swap.axis)
    if not swap.mutual and (also := _of_target(texts, roster, swap, lexicon)) is not None:
        raise SwapRefusal(RefusalReason.MIXED_REFERENTS, also)


def _refuse_bound(texts: Sequence[Text], lexicon: SwapLexicon, axis: str) -> None:
    for text in texts:
        for span in find_phrases(text, lexicon.axes[axis].bound):
            raise SwapRefusal(RefusalReason.BOUND, " ".join(text.words[i].text for i in span))


def _of_target(texts: Sequence[Text], roster: FoundNames, swap: GroupSwap, lexicon: SwapLexicon) -> str | None:
    """Return a word that already names the target group; ``None`` if there is none."""
    if swap.target == NEUTRAL and swap.axis == GENDER:
        return "they" if any(names_they(text) for text in texts) else None
    for text, first_names in zip(texts, roster.first_names, strict=True):
        names = [name.name for name in first_names.values() if swap.target in {name.origin, name.gender}]
        if names and swap.axis in {GENDER, ORIGIN}:
            return names[0]
        if swap.axis == ORIGIN:
            continue
        try:
            taken = _taken(text, set(first_names), swap, lexicon)
            there = next(_of_group(text, lexicon, swap.axis, swap.target, swap.source, taken), None)
        except SwapRefusal as refusal:
            return refusal.refused.what
        if there is not None:
            return text.words[there.first].text
    return None

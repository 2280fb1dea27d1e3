"""The discrete answer in clients' traffic: where a profile's rule finds it, what it means, and the text without it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from auditor.config import SelectionRule
from auditor.domain.coding import Stance
from auditor.live.paths import as_text, parse_path, pruned, read_json, texts_of
from auditor.selection.view import cut

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a rule found: the stances that its values mean, and where they stand."""

    stances: frozenset[Stance]
    spans: tuple[Span, ...] = ()
    structured: object = None  #: the JSON it stands in, less the value


def make_finder(rule: SelectionRule, where: str) -> Callable[[str], Found]:
    """Prepare a rule; ``where`` is its place in the configuration.

    Raises
    ------
    ConfigError
        Its path is none.
    """
    meaning = {_plain(value): Stance(label) for value, label in rule.map.items()}
    if rule.json_path is not None:
        return _json_finder(rule.json_path, meaning, where)
    if rule.options is not None:
        # The longest first: an option may begin with another.
        longest = sorted(rule.options, key=len, reverse=True)
        pattern = re.compile(r"(?<!\w)(" + "|".join(re.escape(one) for one in longest) + r")(?!\w)", re.IGNORECASE)
    else:
        pattern = re.compile(rule.regex or "")
    return lambda text: _marked(text, pattern, meaning)


def _json_finder(given: str, meaning: Mapping[str, Stance], where: str) -> Callable[[str], Found]:
    path = parse_path(given, where)

    def find(text: str) -> Found:
        document = read_json(text)
        value = as_text(path.follow(document))
        stance = meaning.get(_plain(value)) if value is not None else None
        return Found(
            stances=frozenset() if stance is None else frozenset({stance}),
            structured=pruned(document, path.steps) if document is not None else None,
        )

    return find


def _marked(text: str, pattern: re.Pattern[str], meaning: Mapping[str, Stance]) -> Found:
    marks = [(mark, meaning.get(_plain(marked_text(mark)))) for mark in pattern.finditer(text)]
    return Found(
        stances=frozenset(stance for _, stance in marks if stance is not None),
        spans=tuple(mark.span() for mark, stance in marks if stance is not None),
    )


def without(text: str, hidden: tuple[Span, ...], found: Found) -> str:
    """Take what was selected away: the elaboration is all that the rule leaves."""
    if found.structured is not None:
        return "\n".join(texts_of(found.structured)).strip()
    left = cut(text, [*hidden, *found.spans]).strip()
    return left if any(char.isalnum() for char in left) else ""


def marked_text(found: re.Match[str] | None) -> str:
    """Give what a match is about: its first group, where the pattern has one."""
    return "" if found is None else ((found[1] if found.re.groups else found[0]) or "").strip()


def _plain(value: str) -> str:
    return " ".join(value.split()).casefold().strip(" .!\"'*`")

"""Clients' traffic as an audit profile reads it: the proposition, whose request it is, and the answer's two layers.

A profile is compiled once; its mistakes are the configuration's. Nothing here decides a stance: values are mapped as
the profile says, and what it does not map is no selection.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import orjson

from auditor.config import Audit, SelectionRule
from auditor.domain.coding import Selection, SelectionReason, Stance
from auditor.domain.question import Answer
from auditor.live.paths import as_text, parse_path
from auditor.selection.reading import free_text, unreadable
from auditor.selection.refusal import refuses
from auditor.selection.view import blank, cut, look

_FENCED: Final = re.compile(r"```(?:json)?\s*(\{.*?\}|\[.*?\])\s*```", re.DOTALL)
_BRACED: Final = re.compile(r"\{.*\}", re.DOTALL)
#: Everything of a profile without a cluster of whose requests nothing is known.
_UNKNOWN: Final = "unknown"

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A compiled audit profile."""

    proposition: Callable[[object], str | None]  #: of the request
    cluster: Callable[[object, Mapping[str, str], str | None], str]  #: of the request, its tags and its key
    select: Callable[[Answer], Selection]


def compile_profile(audit: Audit) -> Profile:
    """Prepare a profile.

    Raises
    ------
    ConfigError
        A path in it is none.
    """
    where = f"audits: {audit.name}"
    return Profile(
        proposition=_proposition(audit, f"{where}: proposition.request"),
        cluster=_cluster(audit, f"{where}: cluster.request"),
        select=_selector(audit, where),
    )


def _proposition(audit: Audit, where: str) -> Callable[[object], str | None]:
    if audit.proposition is None or audit.proposition.text is not None:
        fixed = audit.proposition.text if audit.proposition else None
        return lambda _: fixed
    path = parse_path(audit.proposition.request or "", where)
    return lambda request: _meant(as_text(path.follow(request)))


def _meant(text: str | None) -> str | None:
    return text if text is not None and text.strip() else None


def _cluster(audit: Audit, where: str) -> Callable[[object, Mapping[str, str], str | None], str]:
    """Whom a request belongs to. Only that two are the same matters, so only a digest is kept."""
    rule = audit.cluster
    tag = rule.tag if rule else None
    path = parse_path(rule.request, where) if rule and rule.request else None
    user = [parse_path(name, where) for name in ("$.safety_identifier", "$.user")]

    def find(request: object, tags: Mapping[str, str], key_id: str | None) -> str:
        if tag is not None:
            value = tags.get(tag)
        elif path is not None:
            value = _meant(as_text(path.follow(request)))
        else:
            value = next((text for one in user if (text := _meant(as_text(one.follow(request))))), key_id)
        return blake2b(value.encode("utf-8", "replace"), digest_size=8).hexdigest() if value else _UNKNOWN

    return find


def _selector(audit: Audit, where: str) -> Callable[[Answer], Selection]:
    elaborate = _elaborator(audit, where)
    if audit.selection is None:
        return lambda answer: _free(answer, elaborate)
    find = _finder(audit.selection, f"{where}: selection.json")

    def select(answer: Answer) -> Selection:
        early = unreadable(answer)
        if early is not None:
            return early
        text = answer.text or ""
        view = look(text)
        # The profile's rules are the user's: they read the answer's own characters, only hidden thinking is blank.
        visible = blank(text, view.hidden)
        found = find(visible)
        remainder = elaborate(visible)
        if remainder is None:
            remainder = _without(text, view.hidden, found)
        stance, reason = _decide(found, view.seen, answer)
        return Selection(stance=stance, reason=reason, remainder=remainder)

    return select


def _free(answer: Answer, elaborate: Callable[[str], str | None]) -> Selection:
    """Read an answer without a selection layer."""
    whole = free_text(answer)
    text = elaborate(answer.text or "")
    if text is None or whole.reason is not SelectionReason.NO_SELECTION_LAYER:
        return whole
    return Selection(stance=None, reason=whole.reason, remainder=text)


def _elaborator(audit: Audit, where: str) -> Callable[[str], str | None]:
    """Find the free text by the profile's rule; ``None`` where it has none."""
    rule = audit.elaboration
    if rule is None:
        return lambda _: None
    if rule.json_path is not None:
        path = parse_path(rule.json_path, f"{where}: elaboration.json")
        return lambda text: (as_text(path.follow(read_json(text))) or "").strip()
    pattern = re.compile(rule.regex or "")
    return lambda text: _group(pattern.search(text))


def _group(found: re.Match[str] | None) -> str:
    return "" if found is None else ((found[1] if found.re.groups else found[0]) or "").strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """What a rule found: the stances that its values mean, and where they stand."""

    stances: frozenset[Stance]
    spans: tuple[Span, ...] = ()
    structured: object = None  #: the JSON it stands in, less the value


def _finder(rule: SelectionRule, where: str) -> Callable[[str], _Found]:
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


def _json_finder(given: str, meaning: Mapping[str, Stance], where: str) -> Callable[[str], _Found]:
    path = parse_path(given, where)

    def find(text: str) -> _Found:
        document = read_json(text)
        value = as_text(path.follow(document))
        stance = meaning.get(_plain(value)) if value is not None else None
        return _Found(
            stances=frozenset() if stance is None else frozenset({stance}),
            structured=_pruned(document, path.steps) if document is not None else None,
        )

    return find


def _marked(text: str, pattern: re.Pattern[str], meaning: Mapping[str, Stance]) -> _Found:
    marks = [(mark, meaning.get(_plain(_group(mark)))) for mark in pattern.finditer(text)]
    return _Found(
        stances=frozenset(stance for _, stance in marks if stance is not None),
        spans=tuple(mark.span() for mark, stance in marks if stance is not None),
    )


def _decide(found: _Found, seen: str, answer: Answer) -> tuple[Stance | None, SelectionReason | None]:
    if len(found.stances) == 1:
        return next(iter(found.stances)), None
    if found.stances:
        return None, SelectionReason.BOTH_MARKERS
    if refuses(seen):
        return Stance.R, None
    return None, SelectionReason.TRUNCATED if answer.finish_reason == "length" else SelectionReason.NO_MARKER


def _without(text: str, hidden: tuple[Span, ...], found: _Found) -> str:
    """Take what was selected away: the elaboration is all that the rule leaves."""
    if found.structured is not None:
        return "\n".join(_texts(found.structured)).strip()
    left = cut(text, [*hidden, *found.spans]).strip()
    return left if any(char.isalnum() for char in left) else ""


def read_json(text: str) -> object | None:
    """Read the JSON that an answer is, or that stands in it, fenced or bare; ``None`` where there is none."""
    candidates = [text.strip(), *(fence[1] for fence in _FENCED.finditer(text))]
    candidates += [braced[0] for braced in _BRACED.finditer(text)]
    for candidate in candidates:
        try:
            value: object = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict | list):
            return value
    return None


def _pruned(value: Any, steps: tuple[str | int, ...]) -> object:
    """Copy a JSON value without what the steps lead to."""
    if not steps:
        return None
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return {name: _pruned(each, rest) if name == step else each for name, each in value.items()}
    if isinstance(value, list) and isinstance(step, int):
        place = step % len(value) if value else 0
        return [_pruned(each, rest) if index == place else each for index, each in enumerate(value)]
    return value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _plain(value: str) -> str:
    return " ".join(value.split()).casefold().strip(" .!\"'*`")

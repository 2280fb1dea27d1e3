"""Read clients' traffic with an audit profile: the proposition, the cluster, and the two layers of the answer.

A profile is compiled once; its errors are configuration errors. A rule finds the value of the selection, which is
removed from the text. A value is mapped to a stance by the profile only; a value that is not mapped is no selection.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from auditor.coding.paths import as_text, parse_path, pruned, read_json, texts_of
from auditor.config import Audit, SelectionRule
from auditor.domain.coding import Selection, SelectionReason, Stance
from auditor.domain.question import Answer
from auditor.selection.reading import free_text, unreadable
from auditor.selection.refusal import refuses
from auditor.selection.view import blank, cut, look

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleMatch:
    """The stances that a rule found, and their places."""

    stances: frozenset[Stance]
    spans: tuple[Span, ...] = ()
    structured: object = None  #: the JSON that contains the value, without the value


def make_finder(rule: SelectionRule, where: str) -> Callable[[str], RuleMatch]:
    """Compile a rule; ``where`` is its place in the configuration.

    Raises
    ------
    ConfigError
        Its path is not valid.
    """
    meaning = {_plain(value): Stance(label) for value, label in rule.map.items()}
    if rule.json_path is not None:
        return _json_finder(rule.json_path, meaning, where)
    if rule.options is not None:
        # The longest first: an option may begin with another.
        longest = sorted(rule.options, key=len, reverse=True)
        pattern = re.compile(
            r"(?<!\w)(" + "|".join(re.escape(option) for option in longest) + r")(?!\w)", re.IGNORECASE
        )
    else:
        pattern = re.compile(rule.regex or "")
    return lambda text: _marked(text, pattern, meaning)


def _json_finder(path_text: str, meaning: Mapping[str, Stance], where: str) -> Callable[[str], RuleMatch]:
    path = parse_path(path_text, where)

    def find(text: str) -> RuleMatch:
        document = read_json(text)
        value = as_text(path.follow(document))
        stance = meaning.get(_plain(value)) if value is not None else None
        return RuleMatch(
            stances=frozenset() if stance is None else frozenset({stance}),
            structured=pruned(document, path.steps) if document is not None else None,
        )

    return find


def _marked(text: str, pattern: re.Pattern[str], meaning: Mapping[str, Stance]) -> RuleMatch:
    marks = [(mark, meaning.get(_plain(marked_text(mark)))) for mark in pattern.finditer(text)]
    return RuleMatch(
        stances=frozenset(stance for _, stance in marks if stance is not None),
        spans=tuple(mark.span() for mark, stance in marks if stance is not None),
    )


def without(text: str, hidden: tuple[Span, ...], match: RuleMatch) -> str:
    """Return the text without the selection: the rest is the elaboration."""
    if match.structured is not None:
        return "\n".join(texts_of(match.structured)).strip()
    left = cut(text, [*hidden, *match.spans]).strip()
    return left if any(char.isalnum() for char in left) else ""


def marked_text(match: re.Match[str] | None) -> str:
    """Return the text of a match: its first group if the pattern has one."""
    return "" if match is None else ((match[1] if match.re.groups else match[0]) or "").strip()


def _plain(value: str) -> str:
    return " ".join(value.split()).casefold().strip(" .!\"'*`")


#: Cluster of requests without any identification.
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditProfile:
    """A compiled audit profile."""

    proposition: Callable[[object], str | None]  #: proposition of a request
    cluster: Callable[[object, Mapping[str, str], str | None], str]  #: cluster of a request, its tags and its key
    select: Callable[[Answer], Selection]


def compile_profile(audit: Audit) -> AuditProfile:
    """Compile a profile.

    Raises
    ------
    ConfigError
        A path in it is not valid.
    """
    where = f"audits: {audit.name}"
    return AuditProfile(
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
    """Return a function that computes a request's cluster as a digest, because only equality matters."""
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
            value = next((text for source in user if (text := _meant(as_text(source.follow(request))))), key_id)
        return blake2b(value.encode("utf-8", "replace"), digest_size=8).hexdigest() if value else _UNKNOWN

    return find


def _selector(audit: Audit, where: str) -> Callable[[Answer], Selection]:
    elaborate = _elaborator(audit, where)
    if audit.selection is None:
        return lambda answer: _free(answer, elaborate)
    find = make_finder(audit.selection, f"{where}: selection.json")

    def select(answer: Answer) -> Selection:
        early = unreadable(answer)
        if early is not None:
            return early
        text = answer.text or ""
        view = look(text)
        # The profile's rules are the user's: they read the original characters; only hidden thinking is blank.
        visible = blank(text, view.hidden)
        match = find(visible)
        remainder = elaborate(visible)
        if remainder is None:
            remainder = without(text, view.hidden, match)
        stance, reason = _decide(match, view.seen, answer)
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
    """Return a function that finds the free text by the profile's rule, or ``None`` without a rule."""
    rule = audit.elaboration
    if rule is None:
        return lambda _: None
    if rule.json_path is not None:
        path = parse_path(rule.json_path, f"{where}: elaboration.json")
        return lambda text: (as_text(path.follow(read_json(text))) or "").strip()
    pattern = re.compile(rule.regex or "")
    return lambda text: marked_text(pattern.search(text))


def _decide(match: RuleMatch, seen: str, answer: Answer) -> tuple[Stance | None, SelectionReason | None]:
    if len(match.stances) == 1:
        return next(iter(match.stances)), None
    if match.stances:
        return None, SelectionReason.BOTH_MARKERS
    if refuses(seen):
        return Stance.R, None
    return None, SelectionReason.TRUNCATED if answer.finish_reason == "length" else SelectionReason.NO_MARKER

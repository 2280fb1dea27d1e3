"""Clients' traffic as an audit profile reads it: the proposition, whose request it is, and the answer's two layers.

A profile is compiled once; its mistakes are the configuration's. ``marking`` finds the selection's value and takes it
away; nothing decides a stance: values are mapped as the profile says, and what it does not map is no selection.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from auditor.config import Audit
from auditor.domain.coding import Selection, SelectionReason, Stance
from auditor.domain.question import Answer
from auditor.live.marking import Found, make_finder, marked_text, without
from auditor.live.paths import as_text, parse_path, read_json
from auditor.selection.reading import free_text, unreadable
from auditor.selection.refusal import refuses
from auditor.selection.view import blank, look

#: Everything of a profile without a cluster of whose requests nothing is known.
_UNKNOWN: Final = "unknown"


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
    find = make_finder(audit.selection, f"{where}: selection.json")

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
            remainder = without(text, view.hidden, found)
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
    return lambda text: marked_text(pattern.search(text))


def _decide(found: Found, seen: str, answer: Answer) -> tuple[Stance | None, SelectionReason | None]:
    if len(found.stances) == 1:
        return next(iter(found.stances)), None
    if found.stances:
        return None, SelectionReason.BOTH_MARKERS
    if refuses(seen):
        return Stance.R, None
    return None, SelectionReason.TRUNCATED if answer.finish_reason == "length" else SelectionReason.NO_MARKER

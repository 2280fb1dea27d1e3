"""Trials of routes: the arm of each request of a client, its instruction, and the tags that record both.

An instruction is put into the request as a system prompt, or after the last question.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from auditor.config import Config, Route
from auditor.trials.assignment import (
    ARM_TAG,
    CONTROL,
    STOPPED,
    TRIAL_TAG,
    UNASSIGNED,
    UNTOUCHED_TAG,
    ArmKind,
    assign,
    stop_key,
)
from gateway.json_spans import JsonSpan, json_items, json_spans

_NULL: Final = msgspec.Raw(b"null")
#: Between the instruction and the text to which it is added, as JSON.
_APART: Final = b"\\n\\n"
_SYSTEM: Final = ("system", "developer")
#: The type of the parts of a message that are text, by endpoint.
_PARTS: Final = {"chat/completions": b"text", "responses": b"input_text"}


class TrialPart(NamedTuple):
    """The part of one request in a trial."""

    tags: Mapping[str, str]
    body: bytes | None  #: what deployments get in place of the client's body; None: the client's


class _Asking(msgspec.Struct):
    """The members of a request that say who asks; one of another type than text is ignored."""

    safety_identifier: msgspec.Raw = _NULL
    user: msgspec.Raw = _NULL


_asking: Final = msgspec.json.Decoder(_Asking)
_text: Final = msgspec.json.Decoder(str)


class Trial:
    """The trial of one route."""

    def __init__(self, config: Config, route: Route, trial: str, stopped: Collection[str]) -> None:
        assert route.mitigation is not None
        self._id = trial
        self._seed = config.seed
        self._route = route.model
        self._unit_tag = config.unit_tag(route)
        self._share = route.mitigation.share
        self._arms: dict[str, tuple[ArmKind, bytes]] = {
            arm.name: (arm.kind, json_text(arm.text)) for arm in route.mitigation.arms
        }
        self._names = tuple(self._arms)
        self._stopped = frozenset(name for name in self._names if stop_key(trial, name) in stopped)

    def take_part(self, endpoint: str, body: bytes, tags: Mapping[str, str]) -> TrialPart:
        """Return the arm of a request, and its body with the instruction of the arm.

        Parameters
        ----------
        endpoint
            Path of the endpoint.
        body
            Body as the client has sent it; it has passed `gateway.wire.read_envelope`.
        tags
            Tags of the request.
        """
        unit = _user(body) if self._unit_tag is None else tags.get(self._unit_tag)
        arm = assign(self._seed, self._route, unit, self._share, self._names) if unit else UNASSIGNED
        trial_tags = {TRIAL_TAG: self._id, ARM_TAG: arm}
        if arm in {CONTROL, UNASSIGNED}:
            return TrialPart(trial_tags, None)
        if arm in self._stopped:
            return TrialPart({**trial_tags, UNTOUCHED_TAG: STOPPED}, None)
        kind, text = self._arms[arm]
        try:
            return TrialPart(trial_tags, instruct(endpoint, kind, text, body))
        except CannotInstruct as refused:
            return TrialPart({**trial_tags, UNTOUCHED_TAG: refused.reason}, None)


def _user(body: bytes) -> str | None:
    """Return who asks, as audit profiles cluster without a rule of their own; None if the request does not say."""
    asking = _asking.decode(body)
    for raw in (asking.safety_identifier, asking.user):
        try:
            user = _text.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if user.strip():
            return user
    return None


# -- the instruction in the request: pure functions from bytes to bytes; every other byte stays -----------------------


class CannotInstruct(Exception):  # noqa: N818 -- a recorded reason, not an error
    """The request has no place for an instruction; ``reason`` is recorded."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def json_text(text: str) -> bytes:
    """Return a text as it stands inside the quotes of a JSON string."""
    return msgspec.json.encode(text)[1:-1]


def instruct(endpoint: str, kind: ArmKind, text: bytes, body: bytes) -> bytes:
    r"""Return the request with an instruction.

    Parameters
    ----------
    endpoint
        Path of the endpoint.
    kind
        ``role``: before everything, as a system prompt. ``task``: after the last message of the user.
    text
        The instruction, from `json_text`.
    body
        The request.

    Raises
    ------
    CannotInstruct
        The request has no such place, or it is not clear which.

    Examples
    --------
    >>> instruct("completions", "task", b"Be brief.", b'{"model": "m", "prompt": "Why?"}')
    b'{"model": "m", "prompt": "Why?\\n\\nBe brief."}'
    """
    if endpoint == "chat/completions":
        return _instruct_chat(kind, text, body)
    if endpoint == "responses":
        return _instruct_response(kind, text, body)
    if endpoint == "completions":
        return _extended(body, _member(body, 0, b"prompt"), text, first=kind == "role", part=None)
    raise CannotInstruct("endpoint")


def _instruct_chat(kind: ArmKind, text: bytes, body: bytes) -> bytes:
    messages = _member(body, 0, b"messages")
    if not body.startswith(b"[", messages.value):
        raise CannotInstruct("no_messages")
    if kind == "task":
        return _after_question(body, messages, text, "chat/completions")
    first = next(json_items(body, messages.value), None)
    if first is None:
        raise CannotInstruct("no_messages")
    if _role(body, first[0]) in _SYSTEM:
        content = _member(body, first[0], b"content")
        return _extended(body, content, text, first=True, part=_PARTS["chat/completions"])
    return _inserted(body, messages.value + 1, b'{"role":"system","content":"%b"},' % text)


def _instruct_response(kind: ArmKind, text: bytes, body: bytes) -> bytes:
    if kind == "task":
        input_member = _member(body, 0, b"input")
        if body.startswith(b"[", input_member.value):
            return _after_question(body, input_member, text, "responses")
        return _extended(body, input_member, text, first=False, part=None)
    if not _named(body, 0, b"instructions"):
        return _inserted(body, body.index(b"{") + 1, b'"instructions":"%b",' % text)
    instructions = _member(body, 0, b"instructions")
    if body[instructions.value : instructions.end] == b"null":
        return body[: instructions.value] + b'"%b"' % text + body[instructions.end :]
    return _extended(body, instructions, text, first=True, part=None)


def _after_question(body: bytes, messages: JsonSpan, text: bytes, endpoint: str) -> bytes:
    """Add the text to the last message of the user."""
    starts = [start for start, _ in json_items(body, messages.value)]
    question = next((start for start in reversed(starts) if _role(body, start) == "user"), None)
    if question is None:
        raise CannotInstruct("no_user_message")
    return _extended(body, _member(body, question, b"content"), text, first=False, part=_PARTS[endpoint])


def _role(body: bytes, start: int) -> str | None:
    """Return the role of the message at a place; None if it has none, or two."""
    roles = _named(body, start, b"role") if body.startswith(b"{", start) else []
    if len(roles) != 1 or not body.startswith(b'"', roles[0].value):
        return None
    role: str = msgspec.json.decode(body[roles[0].value : roles[0].end], type=str)
    return role


def _extended(body: bytes, member: JsonSpan, text: bytes, *, first: bool, part: bytes | None) -> bytes:
    """Add the text at the beginning or the end of a text, or of a list of parts of that type."""
    value = body[member.value : member.end]
    if value.startswith(b'"'):
        apart = _APART if len(value) > 2 else b""
        if first:
            return _inserted(body, member.value + 1, text + apart)
        return _inserted(body, member.end - 1, apart + text)
    if value.startswith(b"[") and part is not None and value[1:-1].strip():
        new_part = b'{"type":"%b","text":"%b"}' % (part, text)
        if first:
            return _inserted(body, member.value + 1, new_part + b",")
        return _inserted(body, member.end - 1, b"," + new_part)
    raise CannotInstruct("no_text")


def _member(body: bytes, start: int, name: bytes) -> JsonSpan:
    """Return the only member of that name of the object at a place."""
    members = _named(body, start, name)
    if len(members) != 1:
        raise CannotInstruct(f"{'no' if not members else 'two'}_{name.decode()}")
    return members[0]


def _named(body: bytes, start: int, name: bytes) -> list[JsonSpan]:
    return [member for member in json_spans(body, start) if member.named(name)]


def _inserted(body: bytes, place: int, text: bytes) -> bytes:
    return body[:place] + text + body[place:]

"""As much of OpenAI's wire as the gateway reads: a few fields of requests and answers. Everything else is bytes.

A request is never written anew: where an alias asks for it, the bytes of its ``model`` value alone are exchanged.
"""

import contextlib
import re
from typing import Annotated, Any

import msgspec

from gateway.errors import BadRequest
from gateway.members import members

#: More than any context holds; what a deployment reports beyond is a mistake, and no count.
MOST_TOKENS = 1 << 32
_MOST_REASON = 200  # characters of a finish reason

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]
_NULL = msgspec.Raw(b"null")


class Envelope(msgspec.Struct):
    """What the gateway needs of a request. All but ``model`` and ``stream`` is the deployment's to judge."""

    model: str
    stream: bool | None = None
    stream_options: msgspec.Raw = _NULL
    max_tokens: msgspec.Raw = _NULL
    max_completion_tokens: msgspec.Raw = _NULL
    max_output_tokens: msgspec.Raw = _NULL
    n: msgspec.Raw = _NULL

    @property
    def omits_usage(self) -> bool:
        """Whether a stream is asked for without a word on ``include_usage``; ``null`` is none."""
        if not self.stream:
            return False
        try:
            options = _stream_options.decode(self.stream_options)
        except _UNREADABLE:
            return False
        return options is None or options.include_usage is None

    @property
    def asked_tokens(self) -> int | None:
        """The most tokens that all choices of the answer may have, at most `MOST_TOKENS`; ``None`` if nothing says."""
        limits = (self.max_tokens, self.max_completion_tokens, self.max_output_tokens)
        asked = [count for limit in limits if limit is not _NULL and (count := _read_count(limit)) is not None]
        if not asked:
            return None
        choices = _read_count(self.n) if self.n is not _NULL else None
        return min(max(asked) * (choices or 1), MOST_TOKENS)


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class Usage(msgspec.Struct):
    """Token counts under the two names the endpoints use."""

    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    @property
    def prompt(self) -> int | None:
        """Tokens read."""
        return self.prompt_tokens if self.prompt_tokens is not None else self.input_tokens

    @property
    def completion(self) -> int | None:
        """Tokens written."""
        return self.completion_tokens if self.completion_tokens is not None else self.output_tokens


class Choice(msgspec.Struct):
    """What the tap reads of a choice."""

    finish_reason: str | None = None


class Answer(msgspec.Struct):
    """What the tap reads of an answer, or of one event of a stream."""

    usage: Usage | None = None
    choices: list[Choice] | None = None
    error: Any = None
    type: str | None = None  #: of an event of ``/v1/responses``; "error" makes an error of it
    status: str | None = None  #: of a ``/v1/responses`` answer
    response: "Answer | None" = None  #: in that endpoint's events

    @property
    def finish_reason(self) -> str | None:
        """The first choice that says why it ended; a response's status once it has ended."""
        reasons = [choice.finish_reason for choice in self.choices or () if choice.finish_reason]
        if self.status in _ENDED:
            reasons.append(self.status)
        return reasons[0][:_MOST_REASON] if reasons else None


class _Parts(msgspec.Struct):
    """An answer of which some part is of another type than the wire's: each is read by itself."""

    usage: msgspec.Raw = _NULL
    choices: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL
    type: msgspec.Raw = _NULL
    status: msgspec.Raw = _NULL
    response: msgspec.Raw = _NULL


_envelope = msgspec.json.Decoder(Envelope)
_answer = msgspec.json.Decoder(Answer)
_parts = msgspec.json.Decoder(_Parts)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_choice = msgspec.json.Decoder(Choice)
_stream_options = msgspec.json.Decoder(StreamOptions | None)
_count: msgspec.json.Decoder[int | None] = msgspec.json.Decoder(Tokens | None)
_text: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str | None)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: What a ``/v1/responses`` answer says of itself when nothing more comes.
_ENDED = ("completed", "failed", "incomplete")
_ERROR_TEXT = re.compile(rb'\s*\{\s*"error"\s*:')
_NO_ERROR = frozenset({b"null", b"false", b"0", b'""', b"{}", b"[]"})


def read_envelope(body: bytes) -> Envelope:
    """Read a request's routing fields.

    Raises
    ------
    BadRequest
        The body is not a JSON object, or ``model`` or ``stream`` is missing or of the wrong type. The message names
        the field, or the byte at which the JSON breaks; it never quotes the body.
    """
    try:
        if not body.isascii():
            body.decode()  # what routing skips is not decoded, and so not checked
        envelope = _envelope.decode(body)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None
    except _UNREADABLE as error:
        raise BadRequest(f"The request body is not valid JSON: {_where(error)}.", code="invalid_json") from None
    if not envelope.model:
        raise BadRequest("'model' is empty.", code="invalid_value", param="model")
    return envelope


def _where(error: Exception) -> str:
    # msgspec ends its messages with "(byte N)", which is all a caller may be told: the rest could quote content.
    match = re.search(r"\(byte \d+\)", str(error))
    kind = "it is cut short" if "truncated" in str(error) else "malformed"
    return f"{kind} {match[0]}" if match else kind


def _explain(found: str) -> BadRequest:
    # msgspec ends its messages with the path of what is wrong: an object without one is missing a field.
    if found.endswith("`$.model`"):
        return BadRequest("'model' must be a string.", code="invalid_type", param="model")
    if found.endswith("`$.stream`"):
        return BadRequest("'stream' must be true or false.", code="invalid_type", param="stream")
    if found.startswith("Object missing"):
        return BadRequest("You must provide a model parameter.", code="missing_required_parameter", param="model")
    return BadRequest("The request body must be a JSON object.", code="invalid_json")


def replace_model(body: bytes, model: str) -> bytes:
    """Exchange the value of the top-level ``model`` for ``model``; every other byte stays.

    ``body`` has passed `read_envelope`, so it is a JSON object with a string there.
    """
    value = msgspec.json.encode(model)
    for member in reversed([member for member in members(body) if member.named(b"model")]):
        body = body[: member.value] + value + body[member.end :]
    return body


def read_answer(body: bytes) -> Answer | None:
    """Read usage, finish reason and error of an answer or an event; ``None`` if it is something else.

    A part that is not what the wire says it should be is absent, and spoils no other. Some servers put the text of an
    error between quotes as it is: what begins as an error is one, also where it is no JSON.
    """
    try:
        answer = _answer.decode(body)
    except msgspec.ValidationError:
        return _read_by_parts(body)
    except _UNREADABLE:
        return Answer(error=True) if _ERROR_TEXT.match(body) else None
    answer.error = answer.error or answer.type == "error"
    return answer


def _read_by_parts(body: bytes) -> Answer | None:
    answer, response = _read_parts(body)
    if answer is not None:
        answer.response, _ = _read_parts(response)
    return answer


def _read_parts(body: bytes | msgspec.Raw) -> tuple[Answer | None, msgspec.Raw]:
    try:
        parts = _parts.decode(body)
    except _UNREADABLE:
        return None, _NULL
    type_ = _read_text(parts.type)
    answer = Answer(
        usage=_read_usage(parts.usage),
        choices=_read_choices(parts.choices),
        error=bytes(parts.error) not in _NO_ERROR or type_ == "error",
        type=type_,
        status=_read_text(parts.status),
    )
    return answer, parts.response


def _read_usage(raw: msgspec.Raw) -> Usage | None:
    try:
        given = _object.decode(raw)
    except _UNREADABLE:
        return None
    counts = {name: _read_count(given.get(name, _NULL)) for name in Usage.__struct_fields__}
    return Usage(**counts) if any(count is not None for count in counts.values()) else None


def _read_count(raw: msgspec.Raw) -> int | None:
    try:
        return _count.decode(raw)
    except _UNREADABLE:
        return None


def _read_text(raw: msgspec.Raw) -> str | None:
    try:
        return _text.decode(raw)
    except _UNREADABLE:
        return None


def _read_choices(raw: msgspec.Raw) -> list[Choice]:
    choices: list[Choice] = []
    try:
        given = _list.decode(raw)
    except _UNREADABLE:
        return choices
    for choice in given:
        with contextlib.suppress(*_UNREADABLE):
            choices.append(_choice.decode(choice))
    return choices

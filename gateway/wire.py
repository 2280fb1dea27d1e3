"""As much of OpenAI's wire as the gateway reads: a few fields of requests and answers. Everything else is bytes.

A request is never written anew: where an alias asks for it, the bytes of its ``model`` value alone are exchanged.
"""

import contextlib
import re
from typing import Annotated, Any

import msgspec

from gateway.errors import BadRequest

#: More than any context holds; what a deployment reports beyond is a mistake, and no count.
MOST_TOKENS = 1 << 32
_MOST_REASON = 200  # characters of a finish reason

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class Envelope(msgspec.Struct):
    """What routing needs of a request."""

    model: str
    stream: bool | None = None


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

    usage: msgspec.Raw = msgspec.Raw(b"null")
    choices: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")
    response: msgspec.Raw = msgspec.Raw(b"null")


_envelope = msgspec.json.Decoder(Envelope)
_answer = msgspec.json.Decoder(Answer)
_parts = msgspec.json.Decoder(_Parts)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_choice = msgspec.json.Decoder(Choice)
_tokens = msgspec.json.Decoder(Tokens)
_text = msgspec.json.Decoder(str)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: What a ``/v1/responses`` answer says of itself when nothing more comes.
_ENDED = ("completed", "failed", "incomplete")
_NO_ERROR = frozenset({b"null", b"false", b"0", b'""', b"{}", b"[]"})

#: The strings of a JSON text, keys with their colon, and its brackets; what lies between them does not matter here.
#: Possessive, for a request may carry a long picture in one string, and trying again would remember its every byte.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?|[{}\[\]]', re.DOTALL)


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
    spans = _model_spans(body)
    value = msgspec.json.encode(model)
    for start, end in reversed(spans):
        body = body[:start] + value + body[end:]
    return body


def _model_spans(body: bytes) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    depth = 0
    in_model = False
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if first == 0x22:  # a string
            if depth != 1:
                continue
            if token[1] is not None:
                in_model = _is_model(body[token.start() : token.start(1)])
            elif in_model:
                spans.append(token.span())
        else:
            depth += 1 if first in b"{[" else -1
    return spans


def _is_model(key: bytes) -> bool:
    # A key may be written with escapes, e.g. "\u006dodel".
    return key == b'"model"' or (b"\\" in key and msgspec.json.decode(key) == "model")


def read_answer(body: bytes) -> Answer | None:
    """Read usage, finish reason and error of an answer or an event; ``None`` if it is something else.

    A part that is not what the wire says it should be is absent, and spoils no other.
    """
    try:
        return _answer.decode(body)
    except msgspec.ValidationError:
        answer, response = _read_parts(body)
        if answer is not None:
            answer.response, _ = _read_parts(response)
        return answer
    except _UNREADABLE:
        return None


def _read_parts(body: bytes | msgspec.Raw) -> tuple[Answer | None, msgspec.Raw]:
    try:
        parts = _parts.decode(body)
    except _UNREADABLE:
        return None, msgspec.Raw(b"null")
    answer = Answer(
        usage=_read_usage(parts.usage),
        choices=_read_choices(parts.choices),
        error=bytes(parts.error) not in _NO_ERROR,
    )
    with contextlib.suppress(*_UNREADABLE):
        answer.status = _text.decode(parts.status)
    return answer, parts.response


def _read_usage(raw: msgspec.Raw) -> Usage | None:
    counts: dict[str, int] = {}
    try:
        given = _object.decode(raw)
    except _UNREADABLE:
        return None
    for name in Usage.__struct_fields__:
        with contextlib.suppress(*_UNREADABLE):
            counts[name] = _tokens.decode(given.get(name, b"null"))
    return Usage(**counts) if counts else None


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

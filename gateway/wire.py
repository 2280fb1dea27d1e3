"""The parts of OpenAI's wire format that the gateway reads: a few fields of requests and answers.

A request is never serialised again: for an alias only the bytes of its ``model`` value are replaced.
"""

import contextlib
import re
from typing import Annotated, Any

import msgspec

from gateway.errors import BadRequest
from gateway.json_spans import json_spans
from gateway.primitives import MODEL_KEY, repeats_model_key

#: A limit above any context window. A larger reported count is an error and is ignored.
MOST_TOKENS = 1 << 32
_MOST_REASON = 200  # characters of a finish reason

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]
_NULL = msgspec.Raw(b"null")


class Envelope(msgspec.Struct):
    """The fields of a request that the gateway reads. Only ``model`` and ``stream`` are validated.

    A count of an unexpected type is None.
    """

    model: str
    stream: bool | None = None
    stream_options: msgspec.Raw = _NULL
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    max_output_tokens: Tokens | None = None
    n: Tokens | None = None

    @property
    def omits_usage(self) -> bool:
        """Whether the request is for a stream and does not set ``include_usage``."""
        if not self.stream:
            return False
        try:
            options = _stream_options.decode(self.stream_options)
        except _UNREADABLE:
            return False
        return options is None or options.include_usage is None

    @property
    def token_limit(self) -> int | None:
        """The maximum number of tokens of all choices, at most `MOST_TOKENS`; ``None`` if the request sets no limit."""
        limit = self.max_tokens
        if self.max_completion_tokens is not None or self.max_output_tokens is not None:
            limit = max(limit or 0, self.max_completion_tokens or 0, self.max_output_tokens or 0)
        return limit if limit is None or self.n is None else min(limit * (self.n or 1), MOST_TOKENS)


class _LenientEnvelope(msgspec.Struct):
    """The fields of an `Envelope`, of which some may have an unexpected type."""

    model: str
    stream: bool | None = None
    stream_options: msgspec.Raw = _NULL
    max_tokens: msgspec.Raw = _NULL
    max_completion_tokens: msgspec.Raw = _NULL
    max_output_tokens: msgspec.Raw = _NULL
    n: msgspec.Raw = _NULL


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class ReportedUsage(msgspec.Struct):
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


class ChoiceSummary(msgspec.Struct):
    """The part of a choice that is read."""

    finish_reason: str | None = None


class AnswerSummary(msgspec.Struct):
    """The part of an answer, or of one event of a stream, that is read."""

    usage: ReportedUsage | None = None
    choices: list[ChoiceSummary] | None = None
    error: Any = None
    type: str | None = None  #: of an event of ``/v1/responses``; "error" makes an error of it
    status: str | None = None  #: of a ``/v1/responses`` answer
    response: "AnswerSummary | None" = None  #: in that endpoint's events

    @property
    def finish_reason(self) -> str | None:
        """The first finish reason of the choices, or the status of a response that has ended."""
        for choice in self.choices or ():
            if choice.finish_reason:
                return choice.finish_reason[:_MOST_REASON]
        return self.status if self.status in _ENDED else None


class _Parts(msgspec.Struct):
    """An answer with a part of an unexpected type: each part is read separately."""

    usage: msgspec.Raw = _NULL
    choices: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL
    type: msgspec.Raw = _NULL
    status: msgspec.Raw = _NULL
    response: msgspec.Raw = _NULL


_envelope = msgspec.json.Decoder(Envelope)
_lenient_envelope = msgspec.json.Decoder(_LenientEnvelope)
_answer = msgspec.json.Decoder(AnswerSummary)
_parts = msgspec.json.Decoder(_Parts)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_choice = msgspec.json.Decoder(ChoiceSummary)
_stream_options = msgspec.json.Decoder(StreamOptions | None)
_count: msgspec.json.Decoder[int | None] = msgspec.json.Decoder(Tokens | None)
_text: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str | None)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: The final statuses of a ``/v1/responses`` answer.
_ENDED = ("completed", "failed", "incomplete")
_ERROR_TEXT = re.compile(rb'\s*\{\s*"error"\s*:')
_NO_ERROR = frozenset({b"null", b"false", b"0", b'""', b"{}", b"[]"})


def read_envelope(body: bytes) -> Envelope:
    """Read a request's routing fields.

    Raises
    ------
    BadRequest
        The body is not a JSON object, or ``model`` or ``stream`` is missing or of the wrong type, or ``model`` appears
        twice, also with other cases of its letters. The message names the field, or the byte at which the JSON breaks;
        it never quotes the body.
    """
    try:
        if not body.isascii():
            body.decode()  # the fields that are skipped are not decoded, and so not checked
        try:
            envelope = _envelope.decode(body)
        except msgspec.ValidationError:
            envelope = _read_leniently(body)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None
    except _UNREADABLE as error:
        raise BadRequest(f"The request body is not valid JSON: {_where(error)}.", code="invalid_json") from None
    if repeats_model_key(body) and _has_two_models(body):
        # Permission is checked for one of them, and the deployment might take another.
        raise BadRequest("'model' must appear once.", code="invalid_value", param="model")
    if not envelope.model:
        raise BadRequest("'model' is empty.", code="invalid_value", param="model")
    return envelope


def _read_leniently(body: bytes) -> Envelope:
    envelope = _lenient_envelope.decode(body)
    counts = (envelope.max_tokens, envelope.max_completion_tokens, envelope.max_output_tokens, envelope.n)
    return Envelope(envelope.model, envelope.stream, envelope.stream_options, *map(_read_count, counts))


def _has_two_models(body: bytes) -> bool:
    """Return whether more than one top-level member is named ``model``, whatever the case of its letters."""
    return sum(MODEL_KEY.match(member.key + b":") is not None for member in json_spans(body)) > 1


def _where(error: Exception) -> str:
    # msgspec ends its messages with "(byte N)", which is all a caller may be told: the rest could quote content.
    match = re.search(r"\(byte \d+\)", str(error))
    kind = "it is cut short" if "truncated" in str(error) else "malformed"
    return f"{kind} {match[0]}" if match else kind


def _explain(message: str) -> BadRequest:
    # msgspec ends its messages with the path of what is wrong: an object without one is missing a field.
    if message.endswith("`$.model`"):
        return BadRequest("'model' must be a string.", code="invalid_type", param="model")
    if message.endswith("`$.stream`"):
        return BadRequest("'stream' must be true or false.", code="invalid_type", param="stream")
    if message.startswith("Object missing"):
        return BadRequest("You must provide a model parameter.", code="missing_required_parameter", param="model")
    return BadRequest("The request body must be a JSON object.", code="invalid_json")


def replace_model(body: bytes, model: str) -> bytes:
    """Replace the value of the top-level ``model``; every other byte stays.

    ``body`` has passed `read_envelope`, so it is a JSON object with one string there.
    """
    member = next(member for member in json_spans(body) if member.named(b"model"))
    return body[: member.value] + msgspec.json.encode(model) + body[member.end :]


def read_answer(body: bytes) -> AnswerSummary | None:
    """Return usage, finish reason and error of an answer or an event; ``None`` if it is something else.

    A part of an unexpected type is ignored. Some servers do not escape the text of an error, so what begins like an
    error object counts as an error even if it is not valid JSON.
    """
    try:
        answer = _answer.decode(body)
    except msgspec.ValidationError:
        return _read_by_parts(body)
    except _UNREADABLE:
        return AnswerSummary(error=True) if _ERROR_TEXT.match(body) else None
    if answer.type == "error":
        answer.error = answer.error or True
    return answer


def _read_by_parts(body: bytes) -> AnswerSummary | None:
    answer, response = _read_parts(body)
    if answer is not None:
        answer.response, _ = _read_parts(response)
    return answer


def _read_parts(body: bytes | msgspec.Raw) -> tuple[AnswerSummary | None, msgspec.Raw]:
    try:
        parts = _parts.decode(body)
    except _UNREADABLE:
        return None, _NULL
    type_ = _read_text(parts.type)
    answer = AnswerSummary(
        usage=_read_usage(parts.usage),
        choices=_read_choices(parts.choices),
        error=bytes(parts.error) not in _NO_ERROR or type_ == "error",
        type=type_,
        status=_read_text(parts.status),
    )
    return answer, parts.response


def _read_usage(raw: msgspec.Raw) -> ReportedUsage | None:
    try:
        members = _object.decode(raw)
    except _UNREADABLE:
        return None
    counts = {name: _read_count(members.get(name, _NULL)) for name in ReportedUsage.__struct_fields__}
    return ReportedUsage(**counts) if any(count is not None for count in counts.values()) else None


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


def _read_choices(raw: msgspec.Raw) -> list[ChoiceSummary]:
    choices: list[ChoiceSummary] = []
    try:
        items = _list.decode(raw)
    except _UNREADABLE:
        return choices
    for choice in items:
        with contextlib.suppress(*_UNREADABLE):
            choices.append(_choice.decode(choice))
    return choices

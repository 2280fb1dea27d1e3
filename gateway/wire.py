"""As much of OpenAI's wire as the gateway reads: a few fields of requests and answers. Everything else is bytes.

A request is never written anew: where an alias asks for it, the bytes of its ``model`` value alone are exchanged.
"""

import re
from typing import Any

import msgspec

from gateway.errors import BadRequest


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class Envelope(msgspec.Struct):
    """What routing needs of a request."""

    model: str
    stream: bool | None = None


class Usage(msgspec.Struct):
    """Token counts under the two names the endpoints use."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

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

    @property
    def finish_reason(self) -> str | None:
        """The first choice that says why it ended."""
        return next((choice.finish_reason for choice in self.choices or () if choice.finish_reason), None)


_envelope = msgspec.json.Decoder(Envelope)
_answer = msgspec.json.Decoder(Answer)
_any_json = msgspec.json.Decoder()

#: The strings, brackets, colons and commas of a JSON text; what lies between them does not matter here.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)


def read_envelope(body: bytes) -> Envelope:
    """Read a request's routing fields.

    Raises
    ------
    BadRequest
        The body is not a JSON object, or ``model`` or ``stream`` is missing or of the wrong type. The message names
        the field, or the byte at which the JSON breaks; it never quotes the body.
    """
    try:
        envelope = _envelope.decode(body)
    except msgspec.ValidationError:
        raise _explain(body) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The request body is not valid JSON: {_where(error)}.", code="invalid_json") from None
    if not envelope.model:
        raise BadRequest("'model' is empty.", code="invalid_value", param="model")
    return envelope


def _where(error: Exception) -> str:
    # msgspec ends its messages with "(byte N)", which is all a caller may be told: the rest could quote content.
    match = re.search(r"\(byte \d+\)", str(error))
    kind = "it is cut short" if "truncated" in str(error) else "malformed"
    return f"{kind} {match[0]}" if match else kind


def _explain(body: bytes) -> BadRequest:
    document = _any_json.decode(body)
    if not isinstance(document, dict):
        return BadRequest("The request body must be a JSON object.", code="invalid_json")
    if "model" not in document:
        return BadRequest("You must provide a model parameter.", code="missing_required_parameter", param="model")
    if not isinstance(document["model"], str):
        return BadRequest("'model' must be a string.", code="invalid_type", param="model")
    return BadRequest("'stream' must be true or false.", code="invalid_type", param="stream")


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
    key: bytes | None = None
    expects_key = False
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if first == 0x22:  # a string
            if depth == 1 and expects_key:
                key = token[0]
            elif depth == 1 and key is not None and _is_model(key):
                spans.append(token.span())
        elif first in b"{[":
            depth += 1
            expects_key = depth == 1
        elif first in b"}]":
            depth -= 1
        elif depth == 1:
            expects_key = first == 0x2C  # after a comma comes a key, after a colon its value
    return spans


def _is_model(key: bytes) -> bool:
    # A key may be written with escapes, e.g. "\u006dodel".
    return key == b'"model"' or (b"\\" in key and msgspec.json.decode(key) == "model")


def read_answer(body: bytes) -> Answer | None:
    """Read usage, finish reason and error of an answer or an event; ``None`` if it is something else."""
    try:
        return _answer.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

"""Read and write OpenAI's wire format for the simulator: requests, answers, stream events, token counts.

The functions work on plain values; ``server`` sends and receives the bytes.
"""

import base64
import hashlib
import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from auditor.simulate.chance import digest
from auditor.simulate.phrases import normalise
from auditor.simulate.respondent import ChatTurn

_TOKEN: Final = re.compile(r"\s*(?:\w{1,8}|[^\w\s])|\s+")
#: What each message adds to the prompt's tokens, as chat formats do.
_PER_MESSAGE: Final = 4
_WORD: Final = re.compile(r"\w+")
_MOST_CHOICES: Final = 16
DIMENSIONS: Final = 256
#: Marks every answer as simulated.
FINGERPRINT: Final = "fp_simulated"


class BadRequestError(Exception):
    """An error in a request: its message and the member that is wrong."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatRequest:
    """The members of a chat completion request that the simulator uses."""

    model: str
    turns: tuple[ChatTurn, ...]
    stream: bool = False
    include_usage: bool = False
    seed: int | None = None
    choices: int = 1
    max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedChoice:
    """One answer as tokens, cut to the limit."""

    tokens: tuple[str, ...]
    finish_reason: str

    @property
    def text(self) -> str:
        """The answer as one string."""
        return "".join(self.tokens)


def read_json(raw: bytes) -> Mapping[str, Any]:
    """Read a body that has to be a JSON object."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    return body


def read_chat(body: Mapping[str, Any]) -> ChatRequest:
    """Read a chat completion request; unknown members are ignored, as OpenAI's servers do."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("messages must be a list with at least one message", param="messages")
    options = body.get("stream_options")
    return ChatRequest(
        model=_model(body),
        turns=tuple(_turn(message) for message in messages),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        seed=_integer(body, "seed", -(2**63), 2**63),
        choices=_integer(body, "n", 1, _MOST_CHOICES) or 1,
        max_tokens=_integer(body, "max_completion_tokens", 1, 2**31) or _integer(body, "max_tokens", 1, 2**31),
    )


def _model(body: Mapping[str, Any]) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequestError("model must be a name", param="model")
    return model


def _turn(message: object) -> ChatTurn:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadRequestError("every message is an object with a role", param="messages")
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return ChatTurn(role=message["role"], content=content if isinstance(content, str) else "")


def _integer(body: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadRequestError(f"{name} must be a whole number from {low} to {high}", param=name)
    return value


def tokens_of(text: str) -> tuple[str, ...]:
    """Cut a text into pieces of up to eight letters; the joined pieces are the text.

    >>> tokens_of("No. Character differs")
    ('No', '.', ' Characte', 'r', ' differs')
    """
    return tuple(_TOKEN.findall(text))


def make_choice(text: str, finish_reason: str, max_tokens: int | None) -> SimulatedChoice:
    """Cut an answer to the limit on tokens."""
    tokens = tokens_of(text)
    if max_tokens is not None and len(tokens) > max_tokens:
        return SimulatedChoice(tokens=tokens[:max_tokens], finish_reason="length")
    return SimulatedChoice(tokens=tokens, finish_reason=finish_reason)


def usage(request: ChatRequest, choices: list[SimulatedChoice]) -> dict[str, int]:
    """Count the tokens of question and answers."""
    prompt = sum(_PER_MESSAGE + len(tokens_of(turn.content)) for turn in request.turns)
    completion = sum(len(choice.tokens) for choice in choices)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def completion_id(*key: object) -> str:
    """Return an answer's id."""
    return f"chatcmpl-{digest('id', *key).hex()[:24]}"


def completion(
    request: ChatRequest, choices: list[SimulatedChoice], *, identifier: str, created: int
) -> dict[str, Any]:
    """Write a whole answer."""
    return {
        "id": identifier,
        "object": "chat.completion",
        "created": created,
        "model": request.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": choice.text, "refusal": None},
                "logprobs": None,
                "finish_reason": choice.finish_reason,
            }
            for index, choice in enumerate(choices)
        ],
        "usage": usage(request, choices),
    }


def stream_events(
    request: ChatRequest, choices: list[SimulatedChoice], *, identifier: str, created: int
) -> Iterator[bytes]:
    """Write the events of a streamed answer, terminator included: one event per token."""
    head = {
        "id": identifier,
        "object": "chat.completion.chunk",
        "created": created,
        "model": request.model,
        "system_fingerprint": FINGERPRINT,
    }
    tail: dict[str, Any] = {"usage": None} if request.include_usage else {}

    def event(index: int, delta: dict[str, str], finish_reason: str | None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return sse(json.dumps({**head, "choices": [choice], **tail}))

    for index, choice in enumerate(choices):
        yield event(index, {"role": "assistant", "content": ""}, None)
        for token in choice.tokens:
            yield event(index, {"content": token}, None)
        yield event(index, {}, choice.finish_reason)
    if request.include_usage:
        yield sse(json.dumps({**head, "choices": [], "usage": usage(request, choices)}))
    yield sse("[DONE]")


def sse(data: str) -> bytes:
    """Frame one server-sent event."""
    return f"data: {data}\n\n".encode()


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Write an error as OpenAI's servers do."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def read_inputs(body: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Read an embeddings request: the model, and the texts."""
    value = body.get("input")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise BadRequestError("input must be a text or a list of texts, none of them empty", param="input")
    return _model(body), texts


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a unit vector that depends only on the words: texts that share words are near each other.

    Each word adds one sign at four places that its hash names; nothing is learned.
    """
    vector = [0.0] * dimensions
    for word in _WORD.findall(normalise(text)) or [text]:
        raw = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for place in range(0, 16, 4):
            number = int.from_bytes(raw[place : place + 4], "big")
            vector[(number >> 1) % dimensions] += 1.0 if number & 1 else -1.0
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / length for value in vector]


def embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer an embeddings request, as numbers or as base64 of little-endian float32."""
    model, texts = read_inputs(body)
    dimensions = _integer(body, "dimensions", 8, 4096) or DIMENSIONS
    packed = body.get("encoding_format") == "base64"
    data = []
    for index, text in enumerate(texts):
        vector = embed(text, dimensions)
        raw = base64.b64encode(struct.pack(f"<{dimensions}f", *vector)).decode() if packed else vector
        data.append({"object": "embedding", "index": index, "embedding": raw})
    tokens = sum(len(tokens_of(text)) for text in texts)
    return {"object": "list", "model": model, "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}

"""What an application does with the unmodified OpenAI SDK, written once so that it can be done to two servers.

Done directly and through the gateway, the returned records must be equal: what differs from call to call (ids, times
of day, durations) is left out of them, and everything else is in them. Clients come from `sdk_client`
and `async_sdk_client`, which close them.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import openai
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

MESSAGES: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "You answer in one word."},
    {"role": "user", "content": "Is the ground level? Ist er eben? 水平ですか 🌍"},
]
PROMPT = "The ground is"
TOKENS = 24

#: what no two calls have in common
_VOLATILE = frozenset({"id", "item_id", "created", "created_at", "completed_at", "timings"})

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    """What the calls without streaming gave."""

    models: list[str]
    chat: Record
    completion: Record
    embeddings: Record
    response: Record

    @property
    def text(self) -> str:
        """What the model said in the chat."""
        return str(self.chat["choices"][0]["message"]["content"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """What the streams gave, chunk by chunk."""

    chat: list[Record]
    chat_with_usage: list[Record]
    completion: list[Record]
    completion_with_usage: list[Record]
    response: list[Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error as the SDK raises it."""

    kind: str
    status: int
    body: Any


def lasting(value: Any) -> Any:
    """Give a model of the SDK as plain data, without what differs from call to call; absent stays absent."""
    if isinstance(value, BaseModel):
        return lasting(value.model_dump(exclude_unset=True))
    if isinstance(value, dict):
        return {key: lasting(inner) for key, inner in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [lasting(inner) for inner in value]
    return value


def chat_text(chunks: list[Record]) -> str:
    """Join the text of a chat stream."""
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def usages(chunks: list[Record]) -> list[Record]:
    """Give the usage blocks of a stream; one is what a client may expect."""
    return [chunk["usage"] for chunk in chunks if chunk.get("usage") is not None]


@contextmanager
def sdk_client(url: str, key: str = "unused", **options: Any) -> Iterator[OpenAI]:
    """Give the SDK's client, without its retries unless asked for."""
    with OpenAI(base_url=url, api_key=key, **{"max_retries": 0, "timeout": 30, **options}) as client:
        yield client


@asynccontextmanager
async def async_sdk_client(url: str, key: str = "unused", **options: Any) -> AsyncIterator[AsyncOpenAI]:
    """Give the SDK's asynchronous client, without its retries unless asked for."""
    async with AsyncOpenAI(base_url=url, api_key=key, **{"max_retries": 0, "timeout": 30, **options}) as client:
        yield client


def exercise_unary(client: OpenAI, model: str) -> Unary:
    """Call every endpoint once."""
    chat = client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=TOKENS)
    completion = client.completions.create(model=model, prompt=PROMPT, temperature=0, max_tokens=TOKENS)
    embeddings = client.embeddings.create(model=model, input=["level", "tilted"])
    response = client.responses.create(model=model, input=PROMPT, temperature=0, max_output_tokens=TOKENS)
    return Unary(
        models=[entry.id for entry in client.models.list()],
        chat=lasting(chat),
        completion=lasting(completion),
        embeddings=lasting(embeddings),
        response=lasting(response),
    )


def exercise_streaming(client: OpenAI, model: str) -> Streaming:
    """Stream from every endpoint that can, with and without usage."""

    def chat(**options: Any) -> list[Record]:
        with client.chat.completions.create(
            model=model, messages=MESSAGES, temperature=0, max_tokens=TOKENS, stream=True, **options
        ) as stream:
            return [lasting(chunk) for chunk in stream]

    def completion(**options: Any) -> list[Record]:
        with client.completions.create(
            model=model, prompt=PROMPT, temperature=0, max_tokens=TOKENS, stream=True, **options
        ) as stream:
            return [lasting(chunk) for chunk in stream]

    with client.responses.create(
        model=model, input=PROMPT, temperature=0, max_output_tokens=TOKENS, stream=True
    ) as events:
        response = [lasting(event) for event in events]
    usage = {"stream_options": {"include_usage": True}}
    return Streaming(
        chat=chat(),
        chat_with_usage=chat(**usage),
        completion=completion(),
        completion_with_usage=completion(**usage),
        response=response,
    )


async def exercise_unary_async(client: AsyncOpenAI, model: str) -> Unary:
    """Call every endpoint once, asynchronously."""
    chat = await client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=TOKENS)
    completion = await client.completions.create(model=model, prompt=PROMPT, temperature=0, max_tokens=TOKENS)
    embeddings = await client.embeddings.create(model=model, input=["level", "tilted"])
    response = await client.responses.create(model=model, input=PROMPT, temperature=0, max_output_tokens=TOKENS)
    return Unary(
        models=[entry.id async for entry in client.models.list()],
        chat=lasting(chat),
        completion=lasting(completion),
        embeddings=lasting(embeddings),
        response=lasting(response),
    )


async def exercise_streaming_async(client: AsyncOpenAI, model: str) -> Streaming:
    """Stream from every endpoint that can, with and without usage, asynchronously."""

    async def chat(**options: Any) -> list[Record]:
        async with await client.chat.completions.create(
            model=model, messages=MESSAGES, temperature=0, max_tokens=TOKENS, stream=True, **options
        ) as stream:
            return [lasting(chunk) async for chunk in stream]

    async def completion(**options: Any) -> list[Record]:
        async with await client.completions.create(
            model=model, prompt=PROMPT, temperature=0, max_tokens=TOKENS, stream=True, **options
        ) as stream:
            return [lasting(chunk) async for chunk in stream]

    async with await client.responses.create(
        model=model, input=PROMPT, temperature=0, max_output_tokens=TOKENS, stream=True
    ) as events:
        response = [lasting(event) async for event in events]
    usage = {"stream_options": {"include_usage": True}}
    return Streaming(
        chat=await chat(),
        chat_with_usage=await chat(**usage),
        completion=await completion(),
        completion_with_usage=await completion(**usage),
        response=response,
    )


def refused_request(client: OpenAI, model: str) -> Refusal:
    """Ask for something no server can do; the SDK's error must carry the server's own words."""
    impossible: Any = "not a list of messages"
    return _refusal(lambda: client.chat.completions.create(model=model, messages=impossible))


def refused_path(client: OpenAI) -> Refusal:
    """Ask for an endpoint that does not exist."""
    return _refusal(lambda: client.post("/nothing/here", cast_to=object, body={}))


def _refusal(call: Any) -> Refusal:
    try:
        answer = call()
    except openai.APIStatusError as error:
        return Refusal(kind=type(error).__name__, status=error.status_code, body=error.body)
    raise AssertionError(f"expected an error, got {answer!r}")

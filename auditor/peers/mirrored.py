"""Whether a client's prompt may be mirrored, and the request that asks a peer the same. Pure.

Only words go to a peer: no tools, no pictures, nothing that a rule has taken something out of. What says how to answer
goes along; what says who asked, or how the answer is to be delivered, does not.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import orjson

from auditor.store.mirroring import Prompt

#: The endpoint whose requests any deployment can be asked with.
_ENDPOINT: Final = "chat/completions"
_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
#: Members by which a model may do something else than write.
_TOOLS: Final = ("tools", "functions", "tool_choice", "function_call", "web_search_options", "mcp_servers")
#: What ``modalities`` says where nothing but words is wanted.
_WORDS: Final[tuple[object, ...]] = (None, [], ["text"])
#: Members that stay behind: delivery, who asked, what the provider may keep, and several answers instead of one.
_STAY: Final = frozenset(
    {
        *("model", "stream", "stream_options", "n", "logprobs", "top_logprobs", "modalities", "service_tier"),
        *("user", "safety_identifier", "metadata", "store", "prompt_cache_key", "prompt_cache_retention"),
        *_TOOLS,
    }
)


class Why(StrEnum):
    """Why a prompt is not mirrored."""

    NOT_CAPTURED = "not_captured"  #: the route keeps no content, or it is gone
    REDACTED = "redacted"  #: something was taken out of it
    TRUNCATED = "truncated"  #: the copy stops at the capture limit
    NOT_A_CHAT = "not_a_chat"
    UNREADABLE = "unreadable"  #: no JSON object with messages
    TOOLS = "tools"
    NOT_TEXT = "not_text"  #: pictures, sound, files


def mirror_of(prompt: Prompt) -> Mapping[str, Any] | Why:
    """Give the members of the request to a peer, the model aside, or why there is none.

    Examples
    --------
    >>> from uuid import UUID
    >>> asked = b'{"model": "m", "messages": [{"role": "user", "content": "Why?"}], "temperature": 0, "stream": true}'
    >>> like = dict(id=UUID(int=1), deployment="d", endpoint="chat/completions", truncated=False, redacted=False,
    ...             prompt_tokens=None, completion_tokens=None)
    >>> mirror_of(Prompt(**like, captured=True, request=asked))
    {'messages': [{'role': 'user', 'content': 'Why?'}], 'temperature': 0}
    >>> str(mirror_of(Prompt(**like, captured=False, request=None)))
    'not_captured'
    """
    facts = (
        (Why.NOT_CAPTURED, not prompt.captured or prompt.request is None),
        (Why.REDACTED, prompt.redacted),
        (Why.TRUNCATED, prompt.truncated),
        (Why.NOT_A_CHAT, prompt.endpoint != _ENDPOINT),
    )
    for why, holds in facts:
        if holds:
            return why
    request = _read(prompt.request)
    if request is None:
        return Why.UNREADABLE
    return _why_not(request) or {name: value for name, value in request.items() if name not in _STAY}


def _read(body: bytes | None) -> Mapping[str, Any] | None:
    try:
        request = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return None
    messages = request.get("messages") if isinstance(request, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        return None
    return dict(request)


def _why_not(request: Mapping[str, Any]) -> Why | None:
    messages = request["messages"]
    if any(request.get(name) for name in _TOOLS) or any(_is_of_tools(one) for one in messages):
        return Why.TOOLS
    if request.get("modalities") not in _WORDS or request.get("audio"):
        return Why.NOT_TEXT
    return None if all(_is_text(one.get("content")) for one in messages) else Why.NOT_TEXT


def _is_of_tools(message: Mapping[str, Any]) -> bool:
    role = message.get("role")
    by_tool = not isinstance(role, str) or role not in _ROLES
    return by_tool or bool(message.get("tool_calls") or message.get("function_call"))


def _is_text(content: object) -> bool:
    if isinstance(content, str):
        return True
    return isinstance(content, list) and bool(content) and all(map(_is_text_part, content))


def _is_text_part(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)

"""Make request and answer bodies of ``chat/completions`` from what tracing tools record of them. No I/O."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from auditor.documents.jsonl import Record

_US: Final = 1_000_000


def request_body(given: object, model: str) -> Mapping[str, Any] | None:
    """Return a request: the recorded body, or one with the recorded messages; None if nothing was recorded."""
    if isinstance(given, dict) and isinstance(given.get("messages"), list):
        return {"model": model, **given}
    if isinstance(given, list) and given:
        return {"model": model, "messages": [_message(one) for one in given]}
    text = _text_of(given)
    return {"model": model, "messages": [{"role": "user", "content": text}]} if text else None


def answer_body(given: object, finish_reason: str | None = None) -> Mapping[str, Any] | None:
    """Return an answer: the recorded body, or one with the recorded message; None if nothing was recorded."""
    if isinstance(given, dict) and isinstance(given.get("choices"), list):
        return given
    if isinstance(given, list):
        given = given[-1] if given else None
    message = _message(given) if isinstance(given, dict) else {"role": "assistant", "content": _text_of(given)}
    if not message.get("content"):
        return None
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason or "stop"}]}


def exchange_members(
    began: datetime,
    ended: datetime,
    *,
    request: Mapping[str, Any] | None,
    answer: Mapping[str, Any] | None,
    error: str | None,
) -> Record:
    """Return the members of a line that follow from the bodies, the times and the error."""
    choices = (answer or {}).get("choices") or [{}]
    finish = choices[0].get("finish_reason") if isinstance(choices[0], dict) else None
    failed: Record = {"outcome": "failed", "status": 500, "error_type": error} if error is not None else {}
    bodies = {"request": request, "response": answer}
    return {
        "endpoint": "chat/completions",
        "stream": False,
        "total_us": max(0, round((ended - began).total_seconds() * _US)),
        "finish_reason": finish if isinstance(finish, str) else None,
        **failed,
        **{name: msgspec.json.encode(body).decode() for name, body in bodies.items() if body},
    }


def _message(given: object) -> dict[str, Any]:
    """Return a message with its text. Parts are joined, in the forms of OpenAI, OpenInference and OpenTelemetry."""
    if not isinstance(given, dict):
        return {"role": "user", "content": _text_of(given)}
    inner = given["message"] if isinstance(given.get("message"), dict) else given
    inner = {name.removeprefix("message."): value for name, value in inner.items()}
    parts = inner.get("content") or inner.get("parts") or inner.get("contents")
    return {"role": str(inner.get("role") or "assistant"), "content": _text_of(parts)}


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "".join(map(_text_of, content))
    if isinstance(content, dict):
        inner = content.get("message_content")
        found = inner if isinstance(inner, dict) else content
        return _text_of(found.get("text") or found.get("content"))
    return content if isinstance(content, str) else ""

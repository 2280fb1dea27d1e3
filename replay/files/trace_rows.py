"""Translate spans of OpenTelemetry and observations of Langfuse into lines of an exchange file. No I/O.

Observations are those of ``GET /api/public/v2/observations`` with the fields ``core, basic, time, io, model, usage``,
and of the export of observations as JSON. Only generations are exchanges; costs and metadata are not imported.

Attributes of spans follow OpenInference (``llm.*``, as Phoenix exports them) or the semantic conventions for generative
AI (``gen_ai.*``). A span is one of Phoenix (its REST API, or its data frame as JSON), or the JSON of a span in the
OpenTelemetry SDK. Only spans of a call to a model are exchanges.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from auditor.documents.jsonl import Record
from replay.files.columns import count_of, moment_of, needed, object_of, text_of, user_digest, value_of
from replay.files.exchange_line import ExcludedRow

_SPAN: Final = "a span of OpenTelemetry"
_ATTRIBUTES: Final = "attributes."
#: The operations that are calls to a model.
_OPERATIONS: Final = frozenset({"chat", "text_completion", "generate_content"})


def line_of_span(row: Record) -> Record:
    """Translate one span.

    Raises
    ------
    BadRow
        A member cannot be read.
    ExcludedRow
        It is no span of a call to a model.
    """
    attributes = _attributes(row)
    _require_model_call(row, attributes)
    context = object_of(row, "context")
    ids = [text_of(context, name) or needed(row, f"context.{name}", _SPAN) for name in ("trace_id", "span_id")]
    began, ended = moment_of(row, "start_time", _SPAN), moment_of(row, "end_time", _SPAN)
    finish = _first(attributes, "llm.finish_reason") or None
    failed = _is_failed(row)
    input_value, output_value = _messages(attributes, "input"), _messages(attributes, "output")
    requested = input_value.get("model") if isinstance(input_value, dict) else None
    named = _first(attributes, "llm.model_name", "gen_ai.request.model", "gen_ai.response.model")
    model = named or str(requested or "unknown")
    return {
        "id": "/".join(part.removeprefix("0x") for part in ids),
        "at": began,
        "deployment": model,
        "model": model,
        "tags": _tags(attributes),
        "prompt_tokens": _count(attributes, "llm.token_count.prompt", "gen_ai.usage.input_tokens"),
        "completion_tokens": _count(attributes, "llm.token_count.completion", "gen_ai.usage.output_tokens"),
        **exchange_members(
            began,
            ended,
            request=request_body(input_value, model),
            answer=None if failed else answer_body(output_value, finish),
            error=_error(row)[:80] if failed else None,
        ),
    }


def _attributes(row: Record) -> Mapping[str, object]:
    """Return the attributes by their full names, whether the row nests them or not."""
    flat: dict[str, object] = {}
    _flatten("", object_of(row, "attributes"), flat)
    for name, value in row.items():
        if name.startswith(_ATTRIBUTES):
            _flatten(name.removeprefix(_ATTRIBUTES), value, flat)
    return flat


def _flatten(prefix: str, value: object, into: dict[str, object]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(f"{prefix}.{name}" if prefix else str(name), inner, into)
    elif value is not None:
        into[prefix] = value


def _require_model_call(row: Record, attributes: Mapping[str, object]) -> None:
    kind = _first(attributes, "openinference.span.kind") or text_of(row, "span_kind")
    operation = _first(attributes, "gen_ai.operation.name")
    if operation in _OPERATIONS or kind == "LLM":
        return
    raise ExcludedRow(f"span kind {(operation or kind or 'unknown')[:40]}")


def _is_failed(row: Record) -> bool:
    status = text_of(row, "status_code") or text_of(object_of(row, "status"), "status_code")
    return status.upper() == "ERROR"


def _error(row: Record) -> str:
    return text_of(row, "status_message") or text_of(object_of(row, "status"), "description") or "error"


def _first(attributes: Mapping[str, object], *names: str) -> str:
    return next((str(attributes[name]) for name in names if attributes.get(name) not in (None, "")), "")


def _count(attributes: Mapping[str, object], *names: str) -> int | None:
    return next((count_of(attributes, name) for name in names if attributes.get(name) is not None), None)


def _messages(attributes: Mapping[str, object], side: str) -> object:
    """Return the recorded body of a side, or else its messages."""
    body = value_of(attributes, f"{side}.value")
    if isinstance(body, dict) and ("messages" in body or "choices" in body):
        return body
    for name in (f"gen_ai.{side}.messages", f"llm.{side}_messages"):
        messages = value_of(attributes, name)
        if isinstance(messages, list) and messages:
            return messages
    return _numbered(attributes, f"llm.{side}_messages.") or attributes.get(f"{side}.value")


def _numbered(attributes: Mapping[str, object], prefix: str) -> list[Any]:
    """Return messages that are spread over attributes such as ``llm.input_messages.0.message.role``."""
    messages: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        number, _, rest = name.removeprefix(prefix).partition(".")
        if not name.startswith(prefix) or not number.isdecimal():
            continue
        message = messages.setdefault(int(number), {})
        if rest in {"message.role", "message.content"}:
            message[rest.rpartition(".")[2]] = value
        elif rest.endswith("message_content.text"):
            message["content"] = str(message.get("content") or "") + str(value)
    return [messages[number] for number in sorted(messages)]


def _tags(attributes: Mapping[str, object]) -> dict[str, str]:
    session = _first(attributes, "session.id", "gen_ai.conversation.id")
    user = _first(attributes, "user.id", "enduser.id")
    return {**({"session_id": session} if session else {}), **({"end_user": user_digest(user)} if user else {})}


_OBSERVATION: Final = "an observation of Langfuse"


def line_of_observation(row: Record) -> Record:
    """Translate one observation.

    Raises
    ------
    BadRow
        A member cannot be read.
    ExcludedRow
        It is no generation.
    """
    kind = needed(row, "type", _OBSERVATION)
    if kind != "GENERATION":
        raise ExcludedRow(f"type {kind[:40]}")
    began = moment_of(row, "startTime", _OBSERVATION)
    ended = moment_of(row, "endTime", _OBSERVATION) if row.get("endTime") else began
    model = text_of(row, "model") or text_of(row, "providedModelName") or "unknown"
    usage = object_of(row, "usageDetails") or object_of(row, "usage")
    tags = {name: text for name, column in (("session_id", "sessionId"),) if (text := text_of(row, column))}
    if user := text_of(row, "userId"):
        tags["end_user"] = user_digest(user)
    failed = text_of(row, "level") == "ERROR"
    input_value, output_value = value_of(row, "input"), value_of(row, "output")
    return {
        "id": needed(row, "id", _OBSERVATION),
        "at": began,
        "deployment": model,
        "model": model,
        "tags": tags,
        "prompt_tokens": count_of(usage, "input"),
        "completion_tokens": count_of(usage, "output"),
        **exchange_members(
            began,
            ended,
            request=request_body(input_value if input_value is not None else row.get("input"), model),
            answer=None if failed else answer_body(output_value if output_value is not None else row.get("output")),
            error=(text_of(row, "statusMessage") or "error")[:80] if failed else None,
        ),
    }


_US: Final = 1_000_000


def request_body(recorded: object, model: str) -> Mapping[str, Any] | None:
    """Return a request: the recorded body, or one with the recorded messages; None if nothing was recorded."""
    if isinstance(recorded, dict) and isinstance(recorded.get("messages"), list):
        return {"model": model, **recorded}
    if isinstance(recorded, list) and recorded:
        return {"model": model, "messages": [_message(message) for message in recorded]}
    text = _text_of(recorded)
    return {"model": model, "messages": [{"role": "user", "content": text}]} if text else None


def answer_body(recorded: object, finish_reason: str | None = None) -> Mapping[str, Any] | None:
    """Return an answer: the recorded body, or one with the recorded message; None if nothing was recorded."""
    if isinstance(recorded, dict) and isinstance(recorded.get("choices"), list):
        return recorded
    if isinstance(recorded, list):
        recorded = recorded[-1] if recorded else None
    message = _message(recorded) if isinstance(recorded, dict) else {"role": "assistant", "content": _text_of(recorded)}
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


def _message(recorded: object) -> dict[str, Any]:
    """Return a message with its text. Parts are joined, in the forms of OpenAI, OpenInference and OpenTelemetry."""
    if not isinstance(recorded, dict):
        return {"role": "user", "content": _text_of(recorded)}
    inner = recorded["message"] if isinstance(recorded.get("message"), dict) else recorded
    inner = {name.removeprefix("message."): value for name, value in inner.items()}
    parts = inner.get("content") or inner.get("parts") or inner.get("contents")
    return {"role": str(inner.get("role") or "assistant"), "content": _text_of(parts)}


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "".join(map(_text_of, content))
    if isinstance(content, dict):
        inner = content.get("message_content")
        holder = inner if isinstance(inner, dict) else content
        return _text_of(holder.get("text") or holder.get("content"))
    return content if isinstance(content, str) else ""

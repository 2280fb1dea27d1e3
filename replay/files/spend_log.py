"""Translate rows of LiteLLM's spend log into lines of an exchange file.

No I/O. The same row has several forms: from its table ``LiteLLM_SpendLogs`` as CSV everything is text, and from
``/spend/logs`` a JSON column may be a value or a text that holds one. Content is present if the proxy was configured to
store it (``store_prompts_in_spend_logs``): the request is in ``proxy_server_request``, in early versions in
``messages``. Headers, keys, spend and addresses are never imported.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

import msgspec

from auditor.documents.jsonl import BadRow, Record
from replay.files.exchange_line import ExcludedRow

#: By ``call_type``: the endpoint, and a member that its answers contain.
_ENDPOINTS: Final = {
    "completion": ("chat/completions", "choices"),
    "text_completion": ("completions", "choices"),
    "responses": ("responses", "output"),
}
#: The text that LiteLLM inserts where it has shortened a text.
_SHORTENED: Final = "litellm_truncated"
_US: Final = 1_000_000


def line_of(row: Record) -> Record:
    """Translate one row.

    Raises
    ------
    BadRow
        It is not a row of a spend log, or a member cannot be read.
    LeftOut
        Its answer is not the text of a deployment: another endpoint, or an answer from the cache.
    """
    request_id = _needed(row, "request_id")
    endpoint, answers_in = _endpoint(row)
    if _text(row, "cache_hit").lower() == "true":
        raise ExcludedRow("answered_from_cache")
    began, ended = _moment(row, "startTime"), _moment(row, "endTime")
    request, response = _request(row), _answer(row, answers_in)
    failed = (_text(row, "status") or _object(row, "metadata").get("status")) == "failure"
    kept = {
        name: msgspec.json.encode(value).decode()
        for name, value in (("request", request), ("response", response))
        if value
    }
    return {
        "id": request_id,
        "at": began,
        "deployment": _needed(row, "model"),
        "model": _text(row, "model_group") or _needed(row, "model"),
        "endpoint": endpoint,
        # The log holds the joined text of a stream, so it is read like any other answer.
        "stream": False,
        "tags": _tags(row),
        "prompt_tokens": _count(row, "prompt_tokens"),
        "completion_tokens": _count(row, "completion_tokens"),
        "total_us": max(0, round((ended - began).total_seconds() * _US)),
        "finish_reason": _finish(response),
        "truncated": any(_SHORTENED in text for text in kept.values()),
        **(_failure(row) if failed else {}),
        **kept,
    }


def _endpoint(row: Record) -> tuple[str, str]:
    kind = _text(row, "call_type") or "completion"
    try:
        # Ignore whether the proxy made the call asynchronously.
        return _ENDPOINTS.get(kind) or _ENDPOINTS[kind.removeprefix("a")]
    except KeyError:
        raise ExcludedRow(f"call_type {kind[:40]}") from None


def _request(row: Record) -> Mapping[str, Any]:
    """Return the request's body; empty if it was not stored."""
    found = _object(row, "proxy_server_request")
    body = found.get("body", found)
    if isinstance(body, dict) and ("messages" in body or "prompt" in body or "input" in body):
        return body
    messages = _value(row, "messages")
    return {"model": _text(row, "model_group"), "messages": messages} if isinstance(messages, list) and messages else {}


def _answer(row: Record, answers_in: str) -> Mapping[str, Any]:
    """Return the answer's body; empty if it was not stored, or was replaced by a word."""
    found = _object(row, "response")
    return found if isinstance(found.get(answers_in), list) else {}


def _finish(response: Mapping[str, Any]) -> str | None:
    choices = response.get("choices") or [{}]
    found = choices[0].get("finish_reason") if isinstance(choices[0], dict) else None
    return found if isinstance(found, str) else None


def _failure(row: Record) -> Record:
    told = _object(row, "metadata").get("error_information")
    error = told if isinstance(told, dict) else {}
    code = str(error.get("error_code") or "")
    status = int(code) if code.isascii() and code.isdecimal() and 400 <= int(code) <= 599 else 500
    return {"outcome": "failed", "status": status, "error_type": str(error.get("error_class") or "") or None}


def _tags(row: Record) -> dict[str, str]:
    """Return the request's tags (``name:value``, or a name only), with a digest of its user.

    Only a digest of a user is kept. It shows which requests belong to the same user, and nothing else.
    """
    listed = _value(row, "request_tags")
    pairs = [tag.partition(":") for tag in listed if isinstance(tag, str)] if isinstance(listed, list) else []
    tags = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
    for name in ("team_id", "session_id"):
        if text := _text(row, name):
            tags[name] = text
    if user := _text(row, "end_user"):
        tags["end_user"] = blake2b(user.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return tags


def _moment(row: Record, name: str) -> datetime:
    text = _needed(row, name)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadRow(f"{name} must be a time, not {text[:40]!r}") from None
    # The table's columns have no time zone; their values are UTC.
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _count(row: Record, name: str) -> int | None:
    given = row.get(name)
    try:
        return int(str(given)) if given not in (None, "") else None
    except ValueError:
        raise BadRow(f"{name} must be a whole number, not {str(given)[:40]!r}") from None


def _needed(row: Record, name: str) -> str:
    text = _text(row, name)
    if not text:
        raise BadRow(f"{name} is missing; is this a row of LiteLLM's spend log?")
    return text


def _text(row: Record, name: str) -> str:
    given = row.get(name)
    return given.strip() if isinstance(given, str) else "" if given is None else str(given)


def _object(row: Record, name: str) -> Mapping[str, Any]:
    found = _value(row, name)
    return found if isinstance(found, dict) else {}


def _value(row: Record, name: str) -> object:
    """Read a JSON column: a value, or a text that holds one."""
    given = row.get(name)
    if not isinstance(given, str) or not given.strip():
        return given
    try:
        found: object = msgspec.json.decode(given)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found

"""Translate rows of LiteLLM's spend log into lines of an exchange file.

No I/O. The same row has several forms: from its table ``LiteLLM_SpendLogs`` as CSV everything is text, and from
``/spend/logs`` a JSON column may be a value or a text that holds one. Content is present if the proxy was configured to
store it (``store_prompts_in_spend_logs``): the request is in ``proxy_server_request``, in early versions in
``messages``. Headers, keys, spend and addresses are never imported.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from auditor.documents.jsonl import Record
from replay.files.columns import count_of, moment_of, needed, object_of, text_of, user_digest, value_of
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
#: What a row is, for messages.
_ROW: Final = "a row of LiteLLM's spend log"


def line_of(row: Record) -> Record:
    """Translate one row.

    Raises
    ------
    BadRow
        It is not a row of a spend log, or a member cannot be read.
    ExcludedRow
        Its answer is not the text of a deployment: another endpoint, or an answer from the cache.
    """
    request_id = needed(row, "request_id", _ROW)
    endpoint, answers_in = _endpoint(row)
    if text_of(row, "cache_hit").lower() == "true":
        raise ExcludedRow("answered_from_cache")
    began, ended = moment_of(row, "startTime", _ROW), moment_of(row, "endTime", _ROW)
    request, response = _request(row), _answer(row, answers_in)
    failed = (text_of(row, "status") or object_of(row, "metadata").get("status")) == "failure"
    kept = {
        name: msgspec.json.encode(value).decode()
        for name, value in (("request", request), ("response", response))
        if value
    }
    return {
        "id": request_id,
        "at": began,
        "deployment": needed(row, "model", _ROW),
        "model": text_of(row, "model_group") or needed(row, "model", _ROW),
        "endpoint": endpoint,
        # The log holds the joined text of a stream, so it is read like any other answer.
        "stream": False,
        "tags": _tags(row),
        "prompt_tokens": count_of(row, "prompt_tokens"),
        "completion_tokens": count_of(row, "completion_tokens"),
        "total_us": max(0, round((ended - began).total_seconds() * _US)),
        "finish_reason": _finish(response),
        "truncated": any(_SHORTENED in text for text in kept.values()),
        **(_failure(row) if failed else {}),
        **kept,
    }


def _endpoint(row: Record) -> tuple[str, str]:
    kind = text_of(row, "call_type") or "completion"
    try:
        # Ignore whether the proxy made the call asynchronously.
        return _ENDPOINTS.get(kind) or _ENDPOINTS[kind.removeprefix("a")]
    except KeyError:
        raise ExcludedRow(f"call_type {kind[:40]}") from None


def _request(row: Record) -> Mapping[str, Any]:
    """Return the request's body; empty if it was not stored."""
    stored = object_of(row, "proxy_server_request")
    body = stored.get("body", stored)
    if isinstance(body, dict) and ("messages" in body or "prompt" in body or "input" in body):
        return body
    messages = value_of(row, "messages")
    return (
        {"model": text_of(row, "model_group"), "messages": messages} if isinstance(messages, list) and messages else {}
    )


def _answer(row: Record, answers_in: str) -> Mapping[str, Any]:
    """Return the answer's body; empty if it was not stored, or was replaced by a word."""
    response = object_of(row, "response")
    return response if isinstance(response.get(answers_in), list) else {}


def _finish(response: Mapping[str, Any]) -> str | None:
    choices = response.get("choices") or [{}]
    reason = choices[0].get("finish_reason") if isinstance(choices[0], dict) else None
    return reason if isinstance(reason, str) else None


def _failure(row: Record) -> Record:
    information = object_of(row, "metadata").get("error_information")
    error = information if isinstance(information, dict) else {}
    code = str(error.get("error_code") or "")
    status = int(code) if code.isascii() and code.isdecimal() and 400 <= int(code) <= 599 else 500
    return {"outcome": "failed", "status": status, "error_type": str(error.get("error_class") or "") or None}


def _tags(row: Record) -> dict[str, str]:
    """Return the request's tags (``name:value``, or a name only), with a digest of its user.

    Only a digest of a user is kept. It shows which requests belong to the same user, and nothing else.
    """
    listed = value_of(row, "request_tags")
    pairs = [tag.partition(":") for tag in listed if isinstance(tag, str)] if isinstance(listed, list) else []
    tags = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
    for name in ("team_id", "session_id"):
        if text := text_of(row, name):
            tags[name] = text
    if user := text_of(row, "end_user"):
        tags["end_user"] = user_digest(user)
    return tags

"""Classification of a deployment's failures: whether and when to retry, and which fallbacks apply. Pure functions."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import random

from auditor.config import Route
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.upstreams.answer_heads import AnswerHead

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0  # seconds, of the exponential backoff
#: A longer Retry-After is not waited for: the answer is relayed, and the client decides.
LONGEST_RETRY_AFTER = 60.0

_TOO_LONG = re.compile(
    rb"context_length_exceeded|exceed_context_size|context_window|maximum context length|prompt is too long"
    rb"|longer than the model's context|exceeds the (?:available|model's) context",
    re.IGNORECASE,
)
_BLOCKED = re.compile(
    rb"content_filter|content_policy_violation|ResponsibleAIPolicyViolation|content management policy", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A deployment's answer with an error status, whole."""

    head: AnswerHead
    body: bytes


class FailureKind(Enum):
    """The kind of a failure, which selects the list of fallbacks."""

    GENERAL = "general"  #: the deployment failed, or is overloaded
    CONTEXT_WINDOW = "context_window"  #: the request is too long for it
    CONTENT_FILTER = "content_filter"  #: it blocks the request
    REQUEST = "request"  #: the request is wrong: another deployment would refuse it too


class UpstreamRefused(Exception):  # noqa: N818 -- what it did
    """The deployment answered with an error status."""

    def __init__(self, refusal: ErrorAnswer) -> None:
        super().__init__(f"status {refusal.head.status}")
        self.refusal = refusal
        self.code = error_type_of(refusal.head.status) or "http_error"


class HungUp(Exception):  # noqa: N818 -- never reaches a client
    """A kept connection ended before any byte of an answer: the server closed it at the moment of its reuse."""


#: The ways in which an attempt can fail before the client has received a byte.
AttemptFailed = UpstreamRefused | UpstreamFailed | UpstreamTimeout


def error_type_of(status: int) -> str | None:
    """Return the class of an error status, or ``None`` for another status."""
    if status < 300:
        return None
    if status == 429:
        return "http_429"
    return "http_5xx" if status >= 500 else "http_4xx"


def kind_of(failure: AttemptFailed) -> FailureKind:
    """Return the kind of a failure. A long prompt or a content filter is recognised by the text of the error."""
    if not isinstance(failure, UpstreamRefused) or retry_may_help(failure.refusal.head.status):
        return FailureKind.GENERAL
    if failure.refusal.head.status in {400, 413, 422}:
        if _TOO_LONG.search(failure.refusal.body):
            return FailureKind.CONTEXT_WINDOW
        if _BLOCKED.search(failure.refusal.body):
            return FailureKind.CONTENT_FILTER
    return FailureKind.REQUEST


def refuses_stream_options(failure: AttemptFailed) -> bool:
    """Return whether a deployment refuses a request because of ``stream_options``."""
    if not isinstance(failure, UpstreamRefused):
        return False
    return failure.refusal.head.status in {400, 422} and b"stream_options" in failure.refusal.body


def fallbacks(route: Route, kind: FailureKind) -> tuple[str, ...]:
    """Return the fallback routes of ``route`` for this kind of failure, in order."""
    if kind is FailureKind.GENERAL:
        return route.fallbacks
    if kind is FailureKind.CONTEXT_WINDOW:
        return route.context_window_fallbacks
    return route.content_filter_fallbacks if kind is FailureKind.CONTENT_FILTER else ()


def retry_may_help(status: int) -> bool:
    """Return whether a retry after this status may succeed."""
    return status in {408, 409, 429} or status >= 500


def wait_before(retry: int, failure: AttemptFailed, draw: Callable[[], float] = random) -> float:
    """Return the seconds to wait before a retry at the same deployment; infinite if there is to be none.

    Exponential backoff with full jitter, and never sooner than the deployment's own ``Retry-After``.

    Parameters
    ----------
    retry
        1 for the first retry.
    failure
        Failure of the last attempt.
    draw
        Function that returns numbers in [0, 1).
    """
    backoff = draw() * min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (retry - 1))
    if not isinstance(failure, UpstreamRefused):
        return backoff
    retry_after = failure.refusal.head.retry_after or 0.0
    return max(backoff, retry_after) if retry_after <= LONGEST_RETRY_AFTER else math.inf


def client_timeout(client: Mapping[str, str]) -> float:
    """Return the timeout of the client in seconds, if its SDK sends one; otherwise infinity."""
    for name in ("x-stainless-read-timeout", "x-stainless-timeout"):
        try:
            seconds = float(client.get(name, 0))
        except ValueError:
            continue
        if seconds > 0:
            return seconds
    return math.inf

"""What a deployment's failure means: whether and when to ask again, and who else might answer. Pure."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import random

from auditor.config import Route
from auditor.retry_after import read_retry_after
from gateway.errors import UpstreamFailed, UpstreamTimeout

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0  # seconds, of the exponential backoff
#: A deployment that asks for a longer pause is not waited for: its answer tells the client, who can plan better.
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
class Refusal:
    """A deployment's answer with an error status, whole."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class Kind(Enum):
    """What kind of failure it was, for the choice of a fallback."""

    GENERAL = "general"  #: the deployment failed, or has no time for us
    CONTEXT_WINDOW = "context_window"  #: the request is too long for it
    CONTENT_FILTER = "content_filter"  #: it blocks the request
    REQUEST = "request"  #: the request is wrong: another deployment would say the same


class UpstreamRefused(Exception):  # noqa: N818 -- what it did
    """The deployment answered with an error status."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"status {refusal.status}")
        self.refusal = refusal
        self.code = error_type_of(refusal.status) or "http_error"


#: All the ways in which an attempt can fail before the client has got a byte.
AttemptFailed = UpstreamRefused | UpstreamFailed | UpstreamTimeout


def error_type_of(status: int) -> str | None:
    """Name the class of an error status; ``None`` for one that is none."""
    if status < 300:
        return None
    if status == 429:
        return "http_429"
    return "http_5xx" if status >= 500 else "http_4xx"


def kind_of(failure: AttemptFailed) -> Kind:
    """Tell what kind of failure it was. A long prompt or a filter is known by the error's own words."""
    if not isinstance(failure, UpstreamRefused) or asking_again_may_help(failure.refusal.status):
        return Kind.GENERAL
    if failure.refusal.status in {400, 413, 422}:
        if _TOO_LONG.search(failure.refusal.body):
            return Kind.CONTEXT_WINDOW
        if _BLOCKED.search(failure.refusal.body):
            return Kind.CONTENT_FILTER
    return Kind.REQUEST


def refuses_stream_options(failure: AttemptFailed) -> bool:
    """Whether a deployment refuses a request for asking for a stream's usage."""
    if not isinstance(failure, UpstreamRefused):
        return False
    return failure.refusal.status in {400, 422} and b"stream_options" in failure.refusal.body


def fallbacks(route: Route, kind: Kind) -> tuple[str, ...]:
    """Name the routes that may answer in place of ``route`` after such a failure, in their order."""
    if kind is Kind.GENERAL:
        return route.fallbacks
    if kind is Kind.CONTEXT_WINDOW:
        return route.context_window_fallbacks
    return route.content_filter_fallbacks if kind is Kind.CONTENT_FILTER else ()


def asking_again_may_help(status: int) -> bool:
    """Whether an answer of this status may be another the next time."""
    return status in {408, 409, 429} or status >= 500


def wait_before(retry: int, failure: AttemptFailed, draw: Callable[[], float] = random) -> float:
    """Give the wait before asking the same deployment again, in seconds; infinite if it is not to be asked.

    Exponential backoff with full jitter, and never sooner than the deployment's own ``Retry-After``.

    Parameters
    ----------
    retry
        1 for the first retry.
    failure
        How the last attempt ended.
    draw
        Gives numbers in [0, 1).
    """
    backoff = draw() * min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (retry - 1))
    if not isinstance(failure, UpstreamRefused):
        return backoff
    asked = read_retry_after(dict(failure.refusal.headers)) or 0.0
    return max(backoff, asked) if asked <= LONGEST_RETRY_AFTER else math.inf


def patience(client: Mapping[str, str]) -> float:
    """Give the seconds after which the client will have gone, where its SDK says so; else infinite."""
    for name in ("x-stainless-read-timeout", "x-stainless-timeout"):
        try:
            seconds = float(client.get(name, 0))
        except ValueError:
            continue
        if seconds > 0:
            return seconds
    return math.inf

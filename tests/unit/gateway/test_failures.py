"""What a failure means: asked again, after which wait, or somebody else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.config import Route, WeightedDeployment
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.routing.failures import (
    LONGEST_RETRY_AFTER,
    ErrorAnswer,
    FailureKind,
    UpstreamRefused,
    client_timeout,
    fallbacks,
    kind_of,
    retry_may_help,
    wait_before,
)
from gateway.upstreams.answer_heads import read_fields

RESET = UpstreamFailed("", code="upstream_reset")


def refused(status: int, body: bytes = b"", **headers: Any) -> UpstreamRefused:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return UpstreamRefused(ErrorAnswer(read_fields(status, named), body))


def error(message: str, code: str | None = None, kind: str = "invalid_request_error") -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529, 599])
def test_a_passing_trouble_may_be_gone_the_next_time(status: int) -> None:
    assert retry_may_help(status)
    assert kind_of(refused(status, b"context_length_exceeded")) is FailureKind.GENERAL


@pytest.mark.parametrize("status", [300, 302, 400, 401, 403, 404, 413, 422])
def test_a_wrong_request_stays_wrong(status: int) -> None:
    assert not retry_may_help(status)
    assert kind_of(refused(status, error("no"))) is FailureKind.REQUEST


@pytest.mark.parametrize(
    "body",
    [
        error("This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
        error("the request exceeds the available context size, try increasing it", "400", "exceed_context_size_error"),
        error("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", "400"),
        error("prompt is too long: 210000 tokens > 200000 maximum"),
        error("The prompt is longer than the model's context length."),
    ],
)
def test_a_prompt_that_is_too_long_is_told_from_other_wrong_requests(body: bytes) -> None:
    assert kind_of(refused(400, body)) is FailureKind.CONTEXT_WINDOW


@pytest.mark.parametrize(
    "body",
    [
        error(
            "The response was filtered due to the prompt triggering our content management policy.", "content_filter"
        ),
        error("Your request was rejected by our safety system.", "content_policy_violation"),
        b'{"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}',
    ],
)
def test_a_blocked_prompt_is_told_from_other_wrong_requests(body: bytes) -> None:
    assert kind_of(refused(400, body)) is FailureKind.CONTENT_FILTER


def test_each_kind_has_its_own_fallbacks() -> None:
    route = Route(
        model="m",
        deployments=(WeightedDeployment(name="a"),),
        fallbacks=("general",),
        context_window_fallbacks=("longer",),
        content_filter_fallbacks=("laxer",),
    )
    assert [fallbacks(route, kind) for kind in FailureKind] == [("general",), ("longer",), ("laxer",), ()]
    assert kind_of(RESET) is FailureKind.GENERAL
    assert kind_of(UpstreamTimeout("", code="first_token_timeout")) is FailureKind.GENERAL


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_backoff_grows_to_eight_seconds_with_full_jitter(retry: int, drawn: float) -> None:
    wait = wait_before(retry, RESET, lambda: drawn)
    assert wait == pytest.approx(drawn * min(8.0, 0.5 * 2 ** (retry - 1)))


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "3"}, 3.0),
        ({"retry_after": "3", "retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "-3"}, 0.25),
        ({"retry_after": "0.1"}, 0.25),
        ({"retry_after": "soon"}, 0.25),
        ({"retry_after": str(LONGEST_RETRY_AFTER)}, LONGEST_RETRY_AFTER),
        ({"retry_after": "61"}, float("inf")),
        ({"retry_after": "1e400"}, float("inf")),
        ({"retry_after": "nan"}, 0.25),
    ],
)
def test_nobody_is_asked_again_sooner_than_he_wants(headers: dict[str, str], wait: float) -> None:
    assert wait_before(1, refused(429, **headers), lambda: 0.5) == wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, float("inf")),
        ({"x-stainless-read-timeout": "2.5"}, 2.5),
        ({"x-stainless-timeout": "600"}, 600.0),
        ({"x-stainless-read-timeout": "never"}, float("inf")),
        ({"x-stainless-read-timeout": "0"}, float("inf")),
        ({"x-stainless-read-timeout": "nan"}, float("inf")),
    ],
)
def test_a_client_s_own_patience_is_known_from_its_sdk(headers: dict[str, str], seconds: float) -> None:
    assert client_timeout(headers) == seconds

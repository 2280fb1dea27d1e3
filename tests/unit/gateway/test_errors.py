"""Errors in OpenAI's shape: what a client's library reads of them."""

import json

import pytest

from gateway.errors import (
    BadRequest,
    Forbidden,
    GatewayError,
    NotFound,
    Saturated,
    Unauthorised,
    UpstreamFailed,
    UpstreamTimeout,
    error_body,
)  # fmt: skip

LEAVES = [BadRequest, Forbidden, NotFound, Saturated, UpstreamFailed, UpstreamTimeout]


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_body_is_openai_s(leaf: type[GatewayError]) -> None:
    error = leaf('a "message"\nof é', code="some_code", param="model")
    told = json.loads(error.body())
    assert set(told) == {"error"}
    assert told["error"] == {
        "message": 'a "message"\nof é', "type": leaf.type, "param": "model", "code": "some_code"
    }  # fmt: skip
    assert leaf.type == ("invalid_request_error" if leaf.status < 500 else "api_error")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadRequest("x", code="x"), 400),
        (BadRequest("x", code="x", status=415), 415),
        (Unauthorised(), 401),
        (Forbidden("x", code="x"), 403),
        (NotFound("x", code="x"), 404),
        (Saturated("x", code="x"), 503),
        (Saturated("x", code="x", status=429), 429),
        (UpstreamFailed("x", code="x"), 502),
        (UpstreamTimeout("x", code="x"), 504),
    ],
)
def test_each_has_its_status_and_says_whether_asking_again_can_help(error: GatewayError, status: int) -> None:
    assert error.http_status == status
    pointless = 400 <= status < 500 and status not in {408, 409, 429}
    assert error.headers().get("x-should-retry") == ("false" if pointless else None)


def test_how_long_to_wait_is_whole_seconds() -> None:
    assert Saturated("x", code="x", retry_after=5).headers() == {"retry-after": "5"}
    assert "retry-after" not in Saturated("x", code="x").headers()
    assert Saturated("x", code="x", retry_after=0).headers()["retry-after"] == "0"


def test_a_body_is_ascii_whatever_the_message() -> None:
    body = error_body("é\ud800\0", type_="t", code="c")
    assert body.isascii()
    assert json.loads(body)["error"]["param"] is None


def test_a_wrong_key_is_what_openai_s_library_knows() -> None:
    told = json.loads(Unauthorised().body())["error"]
    assert (told["type"], told["code"], told["param"]) == ("invalid_request_error", "invalid_api_key", None)

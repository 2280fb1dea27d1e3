"""Errors of the gateway, and their JSON in OpenAI's format. The client should react differently to each class.

    GatewayError            an error answer: status, type, code, param
    ├── BadRequest          400, 413, 415: the request must change
    ├── Unauthorised        401: the key is missing, wrong, expired or revoked
    ├── Forbidden           403: the key is good, but not for this
    ├── NotFound            404: no such model, path or exchange
    ├── Saturated           429, 503: later; carries Retry-After
    │   └── Limited         429: the key has used up its requests, its tokens or its money
    ├── UpstreamFailed      502: the deployment could not be reached, or closed the connection
    └── UpstreamTimeout     504: the deployment did not answer in time

Messages are written for the person who reads a client's log; they never hold key material or request content.
"""

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from typing_extensions import override


class GatewayError(Exception):
    """An error that is sent to the client."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"

    def __init__(
        self,
        message: str,
        *,
        code: str,
        param: str | None = None,
        status: int | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.param = param
        self.http_status = status or self.status
        self.retry_after = retry_after

    def body(self) -> bytes:
        """Write the error as OpenAI's clients read it."""
        return error_body(str(self), type_=self.type, code=self.code, param=self.param)

    def headers(self) -> dict[str, str]:
        """Return the headers that say whether and when a retry can succeed."""
        headers = {} if self.http_status in {408, 409, 429} or self.http_status >= 500 else {"x-should-retry": "false"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        return headers


class BadRequest(GatewayError):  # noqa: N818 -- named after what the client gets
    """The request must change."""

    status = 400
    type = "invalid_request_error"


class Unauthorised(GatewayError):  # noqa: N818 -- as above
    """The key is missing, wrong, expired or revoked."""

    status = 401
    type = "invalid_request_error"

    def __init__(
        self, message: str = "Incorrect API key provided, or none. Ask the operator of this gateway for one."
    ) -> None:
        super().__init__(message, code="invalid_api_key")


class Forbidden(GatewayError):  # noqa: N818 -- as above
    """The key is good, but not for this."""

    status = 403
    type = "invalid_request_error"


class NotFound(GatewayError):  # noqa: N818 -- as above
    """There is no such model, path or exchange."""

    status = 404
    type = "invalid_request_error"


class Saturated(GatewayError):  # noqa: N818 -- as above
    """The request may succeed later."""

    status = 503


class Limited(Saturated):
    """The key has reached a limit. ``type`` names it as OpenAI does: requests, tokens, insufficient_quota."""

    status = 429

    def __init__(
        self, message: str, *, code: str, type_: str, headers: Mapping[str, str], retry_after: int | None = None
    ) -> None:
        super().__init__(message, code=code, retry_after=retry_after)
        self._type = type_
        self._headers = headers

    @override
    def body(self) -> bytes:
        return error_body(str(self), type_=self._type, code=self.code)

    @override
    def headers(self) -> dict[str, str]:
        return {**super().headers(), **self._headers}


class UpstreamFailed(GatewayError):  # noqa: N818 -- as above
    """The deployment could not be reached, or closed the connection."""

    status = 502


class UpstreamTimeout(GatewayError):  # noqa: N818 -- as above
    """The deployment did not answer in time."""

    status = 504


#: What a client is told about a fault of the gateway itself; the log holds the details.
INTERNAL_ERROR: Final = GatewayError("The gateway failed on this request.", code="internal_error")


def error_body(message: str, *, type_: str, code: str, param: str | None = None) -> bytes:
    """Write ``{"error": {...}}``."""
    return json.dumps({"error": {"message": message, "type": type_, "param": param, "code": code}}).encode()

"""The API's errors, in the same shape as the gateway's."""

from aiohttp import web


class ApiError(Exception):
    """What the caller is told."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


def problem(
    status: int, message: str, code: str, param: str | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    """Answer with an error."""
    kind = "api_error" if status >= 500 else "invalid_request_error"
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return web.json_response(body, status=status, headers=headers)

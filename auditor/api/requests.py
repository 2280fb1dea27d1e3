"""Read and check request bodies, and answer with errors in the gateway's format."""

from collections.abc import Collection
from datetime import date
from typing import Any, Final
from uuid import UUID

import orjson
from aiohttp import web

from auditor.domain.local_requests import is_own_origin

#: Most characters of a name or a note.
_LONGEST: Final = 2000


class ApiError(Exception):
    """An error that the client gets as its response."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


def problem(
    status: int, message: str, code: str, param: str | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    """Return an error response."""
    kind = "api_error" if status >= 500 else "invalid_request_error"
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return web.json_response(body, status=status, headers=headers)


def refuse_foreign_pages(request: web.Request) -> None:
    """Refuse a request that a web page of another site sends; on a loopback address no key would stop it.

    Raises
    ------
    ApiError
        403.
    """
    origin = request.headers.get("origin")
    if origin is not None and not is_own_origin(origin, request.scheme, request.host):
        raise ApiError(403, "Requests from web pages of other sites are refused.", "foreign_origin")


async def read_object(request: web.Request, members: Collection[str]) -> dict[str, Any]:
    """Return the JSON object in the body.

    Raises
    ------
    ApiError
        400: it is not a JSON object, or it has a field that is not in ``members``.
    """
    try:
        given = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"The body is not JSON: {error}.", "invalid_json") from None
    if not isinstance(given, dict):
        raise ApiError(400, "The body must be a JSON object.", "invalid_json")
    unknown = sorted(set(given) - set(members))
    if unknown:
        names = ", ".join(sorted(members))
        raise ApiError(
            400, f"The body has an unknown field {unknown[0]!r}. Known fields: {names}.", "invalid_value", unknown[0]
        )
    return given


def optional_text(given: dict[str, Any], name: str) -> str | None:
    """Return a text field, or None where it is absent or empty.

    Raises
    ------
    ApiError
        400.
    """
    value = given.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
        raise ApiError(400, f"{name} must be text of at most {_LONGEST} characters.", "invalid_value", name)
    return value


def required_text(given: dict[str, Any], name: str, meaning: str) -> str:
    """Return a text field that must be present; ``meaning`` is what an error says about it.

    Raises
    ------
    ApiError
        400.
    """
    value = optional_text(given, name)
    if value is None:
        raise ApiError(400, f"{name} must say {meaning}.", "invalid_value", name)
    return value


def optional_day(given: dict[str, Any], name: str) -> date | None:
    """Return a date field, or None where it is absent.

    Raises
    ------
    ApiError
        400.
    """
    value = given.get(name)
    if value is None:
        return None
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ApiError(400, f"{name} must be a date such as 2026-03-01.", "invalid_value", name) from None


def optional_limit(value: str | None, *, usual: int, most: int) -> int:
    """Return the number of entries of a page.

    Raises
    ------
    ApiError
        400.
    """
    if value is None:
        return usual
    if not value.isascii() or not value.isdecimal() or not 1 <= int(value) <= most:
        raise ApiError(400, f"'limit' must be a whole number from 1 to {most}.", "invalid_value", "limit")
    return int(value)


def optional_id(value: str | None, name: str) -> UUID | None:
    """Return the id of an exchange, or None where it is absent.

    Raises
    ------
    ApiError
        400.
    """
    try:
        return None if value is None else UUID(value)
    except ValueError:
        raise ApiError(400, f"{name!r} is not the id of an exchange.", "exchange_not_found", name) from None


def required_id(request: web.Request) -> UUID:
    """Return the id of an exchange in the path.

    Raises
    ------
    ApiError
        404.
    """
    try:
        return UUID(request.match_info["id"])
    except ValueError:
        raise ApiError(404, "'id' is not the id of an exchange.", "exchange_not_found", "id") from None

"""Read and check requests, and answer with JSON; errors have the gateway's format."""

from collections.abc import Collection, Mapping
from datetime import date
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import numpy as np
import orjson
from aiohttp import web
from msgspec import Meta

from auditor.documents.base import Document, Id
from auditor.documents.service import ErrorBody, ErrorEntry
from auditor.domain.moments import read_time

#: Most characters of a name or a note.
_LONGEST: Final = 2000
_LARGEST: Final = 2**63


class ApiError(Exception):
    """An error that the client gets as its response."""

    def __init__(
        self, status: int, message: str, code: str, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.headers = {} if headers is None else dict(headers)


def wants_page(request: web.Request) -> bool:
    """Return whether a browser asks for a page, which shows errors as pages too."""
    return not request.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def problem(error: ApiError) -> web.Response:
    """Return an error response."""
    kind = "api_error" if error.status >= 500 else "invalid_request_error"
    entry = ErrorEntry(message=str(error), type=kind, param=error.param, code=error.code)
    return json_response(ErrorBody(error=entry), error.status, error.headers)


def json_response(
    body: Document | Mapping[str, Any], status: int, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a response of JSON."""
    # Not msgspec's own encoder: it fails at a lone surrogate, which the text of an answer may hold.
    plain = msgspec.to_builtins(body, enc_hook=_plain_number)
    return web.json_response(plain, status=status, headers=headers)


def _plain_number(value: object) -> object:
    # Statistics give numbers of NumPy, which are floats for Python but not for msgspec.
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError


def known_filters(request: web.Request, names: Collection[str]) -> dict[str, str]:
    """Return the filters in the address that have a value.

    Raises
    ------
    ApiError
        400: a filter is not in ``names``, or stands twice.
    """
    for name in request.query:
        if name not in names:
            known = f"Known: {', '.join(names)}." if names else "This address has none."
            raise ApiError(400, f"There is no filter {name!r}. {known}", "unknown_filter", name)
        if len(request.query.getall(name)) > 1:
            raise ApiError(400, f"The filter {name} stands twice.", "invalid_value", name)
    return {name: value for name, value in request.query.items() if value}


async def read_object(request: web.Request, kind: type[Document]) -> dict[str, Any]:
    """Return the JSON object in the body.

    Raises
    ------
    ApiError
        400: it is not a JSON object, or it has a field that ``kind`` does not have.
    """
    try:
        fields = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"The body is not JSON: {error}.", "invalid_json") from None
    if not isinstance(fields, dict):
        raise ApiError(400, "The body must be a JSON object.", "invalid_json")
    members = kind.__struct_fields__
    unknown = sorted(set(fields) - set(members))
    if unknown:
        names = ", ".join(sorted(members))
        raise ApiError(
            400, f"The body has an unknown field {unknown[0]!r}. Known fields: {names}.", "invalid_value", unknown[0]
        )
    return fields


def optional_text(fields: dict[str, Any], name: str) -> str | None:
    """Return a text field, or None where it is absent or empty.

    Raises
    ------
    ApiError
        400.
    """
    value = fields.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
        raise ApiError(400, f"{name} must be text of at most {_LONGEST} characters.", "invalid_value", name)
    return value


def required_text(fields: dict[str, Any], name: str, meaning: str) -> str:
    """Return a text field that must be present; ``meaning`` is what an error says about it.

    Raises
    ------
    ApiError
        400.
    """
    value = optional_text(fields, name)
    if value is None:
        raise ApiError(400, f"{name} must say {meaning}.", "invalid_value", name)
    return value


def optional_number(fields: Mapping[str, Any], name: str, *, whole: bool = False) -> Any:
    """Return a number from 0 on, from JSON or as written in a form, or None where it is absent.

    Raises
    ------
    ApiError
        400.
    """
    value = fields.get(name)
    if value is None:
        return None
    try:
        number = (int if whole else float)(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    kinds = int if whole else (int, float)
    if isinstance(number, bool) or not isinstance(number, kinds) or not 0 <= number < _LARGEST:
        sort = "a whole number" if whole else "a number"
        raise ApiError(400, f"{name} must be {sort} from 0 on.", "invalid_value", name)
    return number


def optional_day(fields: dict[str, Any], name: str) -> date | None:
    """Return a date field, or None where it is absent.

    Raises
    ------
    ApiError
        400.
    """
    value = fields.get(name)
    if value is None:
        return None
    try:
        day = date.fromisoformat(value)
        return read_time(day.isoformat()).date()
    except (TypeError, ValueError):
        raise ApiError(400, f"{name} must be a date such as 2026-03-01.", "invalid_value", name) from None


def page_filters(most: int) -> dict[str, Any]:
    """Return the types of the filters that choose a page of at most so many entries."""
    return {"limit": Annotated[int, Meta(ge=1, le=most)], "after": Id}


def optional_limit(value: str | None, *, default: int, most: int) -> int:
    """Return the number of entries of a page.

    Raises
    ------
    ApiError
        400.
    """
    if value is None:
        return default
    if not (value.isascii() and value.isdecimal() and len(value) < 12 and 1 <= int(value) <= most):
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

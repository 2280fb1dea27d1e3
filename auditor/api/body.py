"""What is sent to the API: from a page of its own or from no page at all, and a JSON object of known members."""

from collections.abc import Collection
from datetime import date
from typing import Any, Final

import orjson
from aiohttp import web

from auditor.api.errors import ApiError

#: Characters of a name or a note.
_LONGEST: Final = 2000


def refuse_foreign_pages(request: web.Request) -> None:
    """Refuse what a page of another site sends: on a loopback address no key would stop it.

    Raises
    ------
    ApiError
        403.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.scheme}://{request.host}":
        raise ApiError(403, "This is not taken from pages of other sites.", "foreign_origin")


async def read_object(request: web.Request, members: Collection[str]) -> dict[str, Any]:
    """Read the body.

    Raises
    ------
    ApiError
        400: it is no JSON object, or has a member that is none of ``members``.
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
        raise ApiError(400, f"There is no member {unknown[0]!r}; there are: {names}.", "invalid_value", unknown[0])
    return given


def words(given: dict[str, Any], name: str) -> str | None:
    """Read a name or a note; an empty one is none.

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


def needed_words(given: dict[str, Any], name: str, says: str) -> str:
    """Read a name that must be there; ``says`` is what it must say.

    Raises
    ------
    ApiError
        400.
    """
    value = words(given, name)
    if value is None:
        raise ApiError(400, f"{name} must say {says}.", "invalid_value", name)
    return value


def day(given: dict[str, Any], name: str) -> date | None:
    """Read a day, where there is one.

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
        raise ApiError(400, f"{name} must be a day, such as 2026-03-01.", "invalid_value", name) from None

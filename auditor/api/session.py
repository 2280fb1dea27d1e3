"""Tell a handler who sends its request (`person_of`), check the role, and read forms."""

import hmac
from collections.abc import Collection
from typing import Final

from aiohttp import web

from auditor.api.auth import ConsoleUser
from auditor.api.requests import ApiError
from auditor.domain.keys import KeyRole

USER: Final = web.RequestKey("user", ConsoleUser)
#: The field of a form that holds the token against forged requests; ``csrf_field()`` writes it into a template.
CSRF: Final = "csrf"


def person_of(request: web.Request) -> ConsoleUser:
    """Return who sends the request."""
    return request[USER]


def require_role(request: web.Request, role: KeyRole) -> ConsoleUser:
    """Return who sends the request, if their role includes ``role``.

    Raises
    ------
    ApiError
        403.
    """
    person = person_of(request)
    if not person.role.includes(role):
        raise ApiError(403, f"This needs the role {role}; {person.name} has the role {person.role}.", "role_missing")
    return person


def acting_name(request: web.Request, name: str | None, field: str) -> str | None:
    """Return the name under which an action is kept, so that nobody acts in the name of somebody else.

    It is the name of the key. An admin may name another person, as an import does. On a loopback address nobody has a
    key, and the given name counts.

    Raises
    ------
    ApiError
        403.
    """
    person = person_of(request)
    if person.key_id is None or (name is not None and person.role is KeyRole.ADMIN):
        return name
    if name is not None and name != person.name:
        message = f"{field} must be {person.name}, the name of your key, or be left out."
        raise ApiError(403, message, "foreign_name", field)
    return person.name


async def read_form(request: web.Request, fields: Collection[str]) -> dict[str, str]:
    """Return the fields of a posted form; absent ones are left out.

    The origin of the request has been checked before any handler runs.

    Raises
    ------
    ApiError
        403: the token is missing or wrong. 400: a field is not in ``fields``, stands twice, is a file, or holds NUL.
    """
    values = await read_fields(request, (*fields, CSRF))
    token = values.pop(CSRF, "")
    if not hmac.compare_digest(token.encode(), person_of(request).csrf.encode()):
        raise ApiError(403, "This form is out of date. Open the page again and repeat.", "csrf_token", CSRF)
    return values


async def read_fields(request: web.Request, fields: Collection[str]) -> dict[str, str]:
    """Return the fields of a posted form without a check of its token.

    Raises
    ------
    ApiError
        400.
    """
    values: dict[str, str] = {}
    for name, value in (await request.post()).items():
        if name not in fields:
            raise ApiError(400, f"The form has an unknown field {name!r}.", "invalid_value", name)
        if name in values or not isinstance(value, str) or "\0" in value:
            raise ApiError(400, f"The field {name} must be one text.", "invalid_value", name)
        values[name] = value
    return values

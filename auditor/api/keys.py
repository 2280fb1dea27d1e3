"""Serve ``/keys`` and ``/api/keys``: list client keys with their limits and spending, make keys, revoke them."""

from typing import Any, Final

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, optional_number, optional_text, read_object, required_text
from auditor.api.session import person_of, read_form, require_role
from auditor.domain.keys import KeyRole
from auditor.errors import UsageError
from auditor.keys import CLIENT_RIGHTS, KeyRequest, closes_gateway, key_json, make_key
from auditor.store.engine import transaction
from auditor.store.keys import add_key, list_keys, revoke_key, spent_by_keys

KEY_FIELDS: Final = ("name", "role", "models", "allow", "rpm", "tpm", "budget", "expires", "first")
#: What a person must confirm, because it changes the gateway for everybody.
_FIRST: Final = "first"


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [
        web.get("/keys", _page),
        web.post("/keys", _create_by_form),
        web.post("/keys/{id}/revoke", _revoke_by_form),
        web.get("/api/keys", _list_json),
        web.post("/api/keys", _create_json),
        web.post("/api/keys/{id}/revoke", _revoke_json),
    ]


async def _read(connection: AsyncConnection) -> list[dict[str, Any]]:
    spent = await spent_by_keys(connection)
    return [key_json(key, created, spent.get(key.id)) for key, created in await list_keys(connection)]


async def _list_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    async with transaction(request.app[ENGINE]) as connection:
        return web.json_response({"keys": await _read(connection)})


async def _create_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    given = await read_object(request, KEY_FIELDS)
    made, secret = await _create(
        request,
        KeyRequest(
            name=required_text(given, "name", "a name"),
            models=optional_text(given, "models") or "",
            allow=optional_text(given, "allow") or "",
            role=_role(optional_text(given, "role")),
            rpm=optional_number(given, "rpm", whole=True),
            tpm=optional_number(given, "tpm", whole=True),
            budget=optional_number(given, "budget"),
            expires=optional_text(given, "expires"),
        ),
        confirmed=given.get(_FIRST) is True,
    )
    return web.json_response({"id": made, "key": secret}, status=201)


async def _create(request: web.Request, asked: KeyRequest, *, confirmed: bool) -> tuple[str, str]:
    config, now = request.app[CONFIG](), request.app[CLOCK]()
    try:
        key, secret = make_key(config, asked, now)
    except UsageError as error:
        field = str(error).partition(":")[0]
        raise ApiError(400, f"{error}.", "invalid_value", field) from None
    async with transaction(request.app[ENGINE]) as connection:
        closing = await closes_gateway(connection, config, key)
        if closing is not None and not confirmed:
            message = f"{closing[0].upper()}{closing[1:]}. Confirm it with the field 'first'."
            raise ApiError(409, message, "first_key", _FIRST)
        await add_key(connection, key, now)
    return key.id, secret


def _role(given: str | None) -> KeyRole | None:
    if given is None:
        return None
    try:
        return KeyRole(given)
    except ValueError:
        raise ApiError(400, f"role must be one of {', '.join(KeyRole)}.", "invalid_value", "role") from None


async def _revoke_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    return web.json_response({"id": await _revoke(request), "revoked": True})


async def _revoke(request: web.Request) -> str:
    key_id = request.match_info["id"]
    if key_id == person_of(request).key_id:
        raise ApiError(409, "You use this key now. Revoke it with another one.", "own_key", "id")
    async with transaction(request.app[ENGINE]) as connection:
        if not await revoke_key(connection, key_id, request.app[CLOCK]()):
            raise ApiError(404, "No key has this id.", "key_not_found", "id")
    return key_id


# -- page ------------------------------------------------------------------------------------------------------------


async def _page(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    return await _shown(request)


async def _create_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    given = await read_form(request, (*KEY_FIELDS, *CLIENT_RIGHTS))
    filled = {name: value.strip() for name, value in given.items() if value.strip()}
    try:
        asked = KeyRequest(
            name=filled.get("name", ""),
            models=filled.get("models", ""),
            allow=",".join(right for right in CLIENT_RIGHTS if right in given),
            role=_role(filled.get("role")),
            rpm=optional_number(filled, "rpm", whole=True),
            tpm=optional_number(filled, "tpm", whole=True),
            budget=optional_number(filled, "budget"),
            expires=filled.get("expires"),
        )
        key_id, secret = await _create(request, asked, confirmed=_FIRST in given)
    except ApiError as error:
        return await _shown(request, filled=given, error=error)
    return await _shown(request, made={"id": key_id, "secret": secret})


async def _revoke_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    await read_form(request, ())
    await _revoke(request)
    raise web.HTTPSeeOther("/keys")


async def _shown(
    request: web.Request,
    *,
    filled: dict[str, str] | None = None,
    made: dict[str, str] | None = None,
    error: ApiError | None = None,
) -> web.Response:
    now = request.app[CLOCK]().isoformat()
    async with transaction(request.app[ENGINE]) as connection:
        keys = await _read(connection)
    for key in keys:
        ended = key["expires_at"] is not None and key["expires_at"] <= now
        key["state"] = "revoked" if key["revoked"] else "expired" if ended else "usable"
    return render_page(
        request,
        "keys.html.j2",
        200 if error is None else error.status,
        keys=keys[::-1],
        made=made,
        message="" if error is None else str(error),
        confirm=error is not None and error.code == "first_key",
        filled=filled or {},
        roles=list(KeyRole),
        rights=list(CLIENT_RIGHTS),
    )

"""Serve ``/keys`` and ``/api/keys``: list client keys with their limits and spending, make keys, revoke them."""

import logging
from typing import Annotated, Final

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.access import wait_until_known
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get, post
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, optional_number, optional_text, read_object, required_text
from auditor.api.session import person_of, read_form, require_role
from auditor.documents.base import Document, one_of
from auditor.documents.service import ClientKeyEntry, ClientKeysBody, NewClientKeyBody, RevokedKeyBody
from auditor.domain.keys import KeyRole
from auditor.errors import UsageError
from auditor.keys import CLIENT_RIGHTS, KeyRequest, closes_gateway, key_entry, make_key
from auditor.store.engine import transaction
from auditor.store.keys import add_key, list_keys, revoke_key, spent_by_keys

log = logging.getLogger(__name__)

#: What a person must confirm, because it changes the gateway for everybody.
_FIRST: Final = "first"
_Limit = Annotated[int, Meta(ge=1)]


class NewClientKeyRequest(Document):
    """A key that somebody asks for; lists are separated by commas."""

    name: str
    role: Annotated[str, one_of(KeyRole)] | UnsetType = UNSET
    models: str | UnsetType = UNSET
    allow: str | UnsetType = UNSET
    rpm: _Limit | UnsetType = UNSET
    tpm: _Limit | UnsetType = UNSET
    budget: Annotated[float, Meta(ge=0.01)] | UnsetType = UNSET
    expires: Annotated[str, Meta(description="A lifetime such as 30d.")] | UnsetType = UNSET
    first: Annotated[bool, Meta(description="Confirms that the gateway asks for keys from then on.")] | UnsetType = (
        UNSET
    )


_FIELDS: Final = NewClientKeyRequest.__struct_fields__


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [
        web.get("/keys", _page),
        web.post("/keys", _create_by_form),
        web.post("/keys/{id}/revoke", _revoke_by_form),
    ]


async def _read(connection: AsyncConnection) -> list[ClientKeyEntry]:
    spent = await spent_by_keys(connection)
    return [key_entry(key, created, spent.get(key.id)) for key, created in await list_keys(connection)]


@get("/api/keys", "Client keys with limits and spending", role=KeyRole.ADMIN)
async def _list(request: web.Request) -> ClientKeysBody:
    async with transaction(request.app[ENGINE]) as connection:
        return ClientKeysBody(keys=await _read(connection))


@post(
    "/api/keys",
    "Make a key; the secret is in this answer only",
    takes=NewClientKeyRequest,
    role=KeyRole.ADMIN,
    statuses=(201,),
)
async def _make(request: web.Request) -> NewClientKeyBody:
    fields = await read_object(request, NewClientKeyRequest)
    made, secret = await _create(
        request,
        KeyRequest(
            name=required_text(fields, "name", "a name"),
            models=optional_text(fields, "models") or "",
            allow=optional_text(fields, "allow") or "",
            role=_role(optional_text(fields, "role")),
            rpm=optional_number(fields, "rpm", whole=True),
            tpm=optional_number(fields, "tpm", whole=True),
            budget=optional_number(fields, "budget"),
            expires=optional_text(fields, "expires"),
        ),
        confirmed=fields.get(_FIRST) is True,
    )
    return NewClientKeyBody(id=made, key=secret)


async def _create(request: web.Request, key_request: KeyRequest, *, confirmed: bool) -> tuple[str, str]:
    config, now = request.app[CONFIG](), request.app[CLOCK]()
    try:
        key, secret = make_key(config, key_request, now)
    except UsageError as error:
        field = str(error).partition(":")[0]
        raise ApiError(400, f"{error}.", "invalid_value", field) from None
    async with transaction(request.app[ENGINE]) as connection:
        closing = await closes_gateway(connection, config, key)
        if closing is not None and not confirmed:
            message = f"{closing[0].upper()}{closing[1:]}. Confirm it with the field 'first'."
            raise ApiError(409, message, "first_key", _FIRST)
        await add_key(connection, key, now)
    if await wait_until_known(config, key) is False:
        log.warning("the gateway on this host has not confirmed the new key %s yet; its log says why", key.id)
    return key.id, secret


def _role(name: str | None) -> KeyRole | None:
    if name is None:
        return None
    try:
        return KeyRole(name)
    except ValueError:
        raise ApiError(400, f"role must be one of {', '.join(KeyRole)}.", "invalid_value", "role") from None


@post("/api/keys/{id}/revoke", "Revoke a key", role=KeyRole.ADMIN)
async def _end(request: web.Request) -> RevokedKeyBody:
    return RevokedKeyBody(id=await _revoke(request), revoked=True)


OPERATIONS: Final = (_list, _make, _end)


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
    fields = await read_form(request, (*_FIELDS, *CLIENT_RIGHTS))
    filled = {name: value.strip() for name, value in fields.items() if value.strip()}
    try:
        key_request = KeyRequest(
            name=filled.get("name", ""),
            models=filled.get("models", ""),
            allow=",".join(right for right in CLIENT_RIGHTS if right in fields),
            role=_role(filled.get("role")),
            rpm=optional_number(filled, "rpm", whole=True),
            tpm=optional_number(filled, "tpm", whole=True),
            budget=optional_number(filled, "budget"),
            expires=filled.get("expires"),
        )
        key_id, secret = await _create(request, key_request, confirmed=_FIRST in fields)
    except ApiError as error:
        return await _shown(request, filled=fields, error=error)
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
    return render_page(
        request,
        "keys.html.j2",
        200 if error is None else error.status,
        keys=[(key, _state(key, now)) for key in reversed(keys)],
        made=made,
        message="" if error is None else str(error),
        confirm=error is not None and error.code == "first_key",
        filled=filled or {},
        roles=list(KeyRole),
        rights=list(CLIENT_RIGHTS),
    )


def _state(key: ClientKeyEntry, now: str) -> str:
    if key.revoked:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "usable"

"""Who may read the API: anyone on this machine while it listens on a loopback address, else a key with the right."""

from datetime import UTC, datetime

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api.errors import ApiError
from auditor.domain.keys import Right, hash_secret
from auditor.store.engine import reading
from auditor.store.keys import list_keys

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Door:
    """Decides about one request.

    On a loopback address no key is needed, but the ``Host`` must be a local name: a page in a browser here must not
    read stored prompts by pointing a name of its own at this machine.
    """

    def __init__(self, engine: AsyncEngine, *, loopback: bool) -> None:
        self._engine = engine
        self._loopback = loopback

    async def admit(self, request: web.Request) -> None:
        """Let a request in.

        Raises
        ------
        ApiError
            403 for a foreign host name, 401 for a missing or wrong key, 403 for a key without the right.
        """
        if self._loopback:
            if request.url.host not in _LOCAL_NAMES:
                raise ApiError(403, "Ask for this API by a local name (127.0.0.1, localhost).", "foreign_host")
            return
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        hashed = hash_secret(secret.strip())
        async with reading(self._engine) as connection:
            known = {key.hash: key for key, _ in await list_keys(connection)}
        key = known.get(hashed) if scheme.lower() == "bearer" else None
        if key is None or not key.usable(datetime.now(UTC)):
            raise ApiError(401, "A key is needed: Authorization: Bearer ...", "invalid_api_key")
        if Right.AUDIT not in key.rights:
            raise ApiError(403, "This key has no right 'audit'.", "right_missing")

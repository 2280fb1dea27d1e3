"""Declare the operations of the API: what each takes and answers, as types, and which role it needs.

``app`` serves them, and ``openapi`` describes them. To add one, define its answer in ``auditor.documents``, decorate
its handler with ``get`` or ``post``, and name it in the module's ``OPERATIONS``.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from aiohttp import web

from auditor.api.requests import json_response, known_filters
from auditor.api.session import require_role
from auditor.documents.base import Document
from auditor.domain.keys import KeyRole

NO_FILTERS: Final[Mapping[str, Any]] = MappingProxyType({})
_Body = TypeVar("_Body", bound=Document | Mapping[str, Any])


class WithStatus(NamedTuple, Generic[_Body]):
    """An answer with a status of its own."""

    body: _Body
    status: int


_Answer = Document | Mapping[str, Any] | WithStatus[Any]
Handler = Callable[[web.Request], Awaitable[_Answer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    summary: str
    handler: Handler
    role: KeyRole
    filters: Mapping[str, Any]  #: the type of each filter in the address
    takes: type[Document] | None  #: the type of the body of the request
    statuses: tuple[int, ...]  #: of the answer; all but the first only by a ``WithStatus``

    @property
    def answer(self) -> Any:
        """The type of the answer."""
        kind = get_type_hints(self.handler, include_extras=True)["return"]
        return get_args(kind)[0] if get_origin(kind) is WithStatus else kind

    def route(self) -> web.RouteDef:
        """Return the route."""
        add = {"GET": web.get, "POST": web.post}[self.method]
        return add(self.path, self.respond)

    async def respond(self, request: web.Request) -> web.Response:
        """Check filters and role, and answer a request.

        Raises
        ------
        ApiError
            400 for a filter that the operation does not name, 403 for the role.
        """
        known_filters(request, self.filters)
        require_role(request, self.role)
        answer = await self.handler(request)
        reply = answer if isinstance(answer, WithStatus) else WithStatus(answer, self.statuses[0])
        return json_response(reply.body, reply.status)


def get(
    path: str, summary: str, *, filters: Mapping[str, Any] = NO_FILTERS, role: KeyRole = KeyRole.VIEWER
) -> Callable[[Handler], Operation]:
    """Make an operation of a handler that reads."""
    return lambda handler: Operation(
        method="GET",
        path=path,
        summary=summary,
        handler=handler,
        role=role,
        filters=filters,
        takes=None,
        statuses=(200,),
    )


def post(
    path: str, summary: str, *, takes: type[Document] | None = None, role: KeyRole, statuses: tuple[int, ...] = (200,)
) -> Callable[[Handler], Operation]:
    """Make an operation of a handler that changes something."""
    return lambda handler: Operation(
        method="POST", path=path, summary=summary, handler=handler, role=role, filters=NO_FILTERS, takes=takes,
        statuses=statuses,
    )  # fmt: skip

"""What a cache of request heads does for client connections: it takes requests before they are parsed."""

from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from gateway.http.request import Request

if TYPE_CHECKING:
    from gateway.http.connection import ClientConnection


class Offer(Enum):
    """What becomes of bytes that are offered to a cache of request heads."""

    TAKEN = auto()  #: they are one request, which is being answered
    REFUSED = auto()  #: they are one request, which has been answered with an error
    DECLINED = auto()  #: the parser reads them


class RequestCache(Protocol):
    """Takes requests whose heads it knows, before they are parsed."""

    def take(self, client: "ClientConnection", data: bytes, arrived_ns: int) -> Offer | int:
        """Take a request, whose first bytes arrived at ``arrived_ns`` (0: now), and set the exchange of its client.

        Of a request that is incomplete the number of bytes is returned that are missing.
        """

    def remember(self, data: bytes, request: Request) -> None:
        """Remember the head of a request that was declined, and what the parser has made of it."""

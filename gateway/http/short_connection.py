"""A client connection that first offers each request to a short way, which answers it without a task.

The short way gets a request as bytes, before the parser does, and only when nothing else is under way on the
connection. What it does not take goes to the parser, as if it had come just now.
"""

import math
import time
from enum import Enum, auto
from typing import Final, Protocol

from typing_extensions import override

from gateway.http.connection import IN_BODY, ClientConnection, ClientConnectionOwner, Handler
from gateway.http.request import Request


class Offer(Enum):
    """What becomes of bytes that are offered to a short way."""

    TAKEN = auto()  #: they are one request, which is being answered
    INCOMPLETE = auto()  #: they may become one
    DECLINED = auto()  #: the parser reads them


_TAKEN: Final = Offer.TAKEN  # members are looked up in Python, and each request asks for it


class ShortExchange(Protocol):
    """A request that is being answered on a short way."""

    def client_lost(self) -> None:
        """End it: the client has disconnected."""

    def hand_over(self) -> None:
        """Call `ShortConnection.answer_by`: the rest is done by a task."""


class ShortWay(Protocol):
    """Answers usual requests without a task."""

    def take(self, client: "ShortConnection", data: bytes, arrived_ns: int) -> Offer:
        """Take a request, whose first bytes arrived at ``arrived_ns`` (0: now), and set the exchange of its client."""

    def learn(self, data: bytes, request: Request) -> None:
        """Learn from the bytes of a request that was declined, and from what the parser has made of its head."""


class ShortConnection(ClientConnection):
    """A connection of a client.

    Parameters
    ----------
    owner
        The server.
    short_way
        Is offered each request.

    Attributes
    ----------
    exchange
        The request that is being answered on the short way.
    """

    def __init__(self, owner: ClientConnectionOwner, short_way: ShortWay) -> None:
        super().__init__(owner)
        self.exchange: ShortExchange | None = None
        self._short_way = short_way
        self._held = b""  # an incomplete request, or what follows the current one
        self._held_since = 0  # nanoseconds since 1970
        self._is_in_message = False  # the parser has read a part of a request
        self._is_declined = False  # the parser is reading what was declined
        self._begun: Request | None = None  # the request that the parser has read from it

    # -- interface for the short way --------------------------------------------------------------------------------

    def answer(self, data: bytes) -> None:
        """Send the whole answer of the exchange, which has ended."""
        self.exchange = None
        if self._transport.is_closing():
            return
        self._transport.write(data)
        if self.is_full:  # a task waits until the client has taken it
            self._begin(_answered_request(self), _answered)
        else:
            self._rest()
        if self._held:
            self._offer_held()

    def answer_by(self, handler: Handler, request: Request, *, has_begun: bool = False) -> None:
        """Have the rest of the exchange done by a task; ``has_begun``: some of its answer has been sent."""
        self.exchange = None
        self._begin(request, handler)
        self.has_begun = has_begun
        self._offer_held()

    # -- callbacks --------------------------------------------------------------------------------------------------

    @override
    def data_received(self, data: bytes) -> None:
        if self.exchange is not None:
            self._held += data
            self._pause()
        elif self.task is not None or self._is_in_message or self._input_closed or self._owner.draining:
            super().data_received(data)
        else:
            is_held = bool(self._held)
            if is_held:
                data = self._held + data
            offer = self._short_way.take(self, data, self._held_since if is_held else 0)
            if offer is _TAKEN:
                self._held = b""
                self._ticks_left = self._unused_since = math.inf
            elif offer is Offer.INCOMPLETE:
                if not is_held:
                    self._held_since = time.time_ns()
                self._held = data
                self._ticks_left, self._unused_since = IN_BODY, math.inf
            else:
                self._decline(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._held = b""
        super().connection_lost(exc)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.client_lost()

    @override
    def hand_over(self) -> None:
        if self.exchange is not None:
            self.exchange.hand_over()
        elif self._held:
            held, self._held = self._held, b""
            super().data_received(held)

    @override
    def on_message_begin(self) -> None:
        self._is_in_message = True
        super().on_message_begin()

    @override
    def on_message_complete(self) -> None:
        self._is_in_message = False
        super().on_message_complete()

    @override
    def _begin(self, request: Request, handler: Handler | None = None) -> None:
        if self._is_declined:
            self._begun = request
        super()._begin(request, handler)

    # -- offering ---------------------------------------------------------------------------------------------------

    def _decline(self, data: bytes) -> None:
        self._held = b""
        self._is_declined = True
        super().data_received(data)
        self._is_declined = False
        request, self._begun = self._begun, None
        if request is not None:
            self._short_way.learn(data, request)

    def _offer_held(self) -> None:
        held, self._held = self._held, b""
        if held:
            self.resume()
            self.data_received(held)


def _answered_request(client: ShortConnection) -> Request:
    request = Request(client, "", "", {}, minor=1, stays=True)
    request.end()
    return request


async def _answered(_: Request) -> bool:
    """Do nothing: the request has been answered, and the connection stays."""
    return False

"""An exchange on the short way whose deployment has been asked: what belongs to it, and its way back to a task.

Most exchanges end well, and are recorded from what is kept here. The tap and the slot of the ordinary way are made for
the others.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from auditor.config import Config, Timeouts
from gateway.auth import Directives
from gateway.exchange.app import Gateway, Router
from gateway.exchange.due_exchanges import DueExchanges
from gateway.exchange.endpoints import DISCONNECTED, Answer, run
from gateway.exchange.head_plans import KnownHead
from gateway.exchange.route_plans import DeploymentPlan, RoutePlan
from gateway.exchange.tap import Tap
from gateway.http import Request
from gateway.http.short_connection import ShortConnection
from gateway.limits.key_limits import Grant
from gateway.routing.breaker import BreakerVerdict, Ticket
from gateway.routing.slots import Slot
from gateway.routing.table import RoutingTable
from gateway.upstreams.answer import PooledAnswer
from gateway.upstreams.connection import UpstreamConnection
from gateway.wire import Envelope


class AskedExchange(msgspec.Struct, eq=False):
    """One exchange. A struct of `msgspec`, as a client waits until it is made."""

    gateway: Gateway
    router: Router
    due: DueExchanges
    config: Config  #: with the table, those that the deployment was chosen from
    table: RoutingTable
    client: ShortConnection
    connection: UpstreamConnection
    known: KnownHead
    plan: RoutePlan
    chosen: DeploymentPlan
    ticket: Ticket  #: of the slot
    grant: Grant | None
    directives: Directives
    envelope: Envelope
    body: bytes
    id: str
    request_id: str
    at_us: int  #: microseconds since 1970
    usage_injected: bool  #: whether usage is asked for although the client does not ask for it
    began: float  #: `time.perf_counter` when the request had arrived
    asked_at: float  #: the same when the deployment was asked
    asked_time: float  #: the same in the event loop's time
    _tap: Tap | None = None
    _slot: Slot | None = None

    @property
    def timeouts(self) -> Timeouts:
        """The deployment's."""
        return self.chosen.timeouts

    @property
    def tap(self) -> Tap:
        """The tap, which records the exchange from now on."""
        tap = self._tap
        if tap is None:
            head, gateway = self.known.plan, self.gateway
            context = head.endpoint.context(
                self.config, self.plan.route, head.key, self.directives, self.envelope,
                exchange_id=self.id, asked_id=self.request_id, at_us=self.at_us, body=self.body,
            )  # fmt: skip
            tap = self._tap = Tap(context, gateway.recorder, self.config.gateway.capture_limit, self.began)
            tap.grant, tap.deployment, tap.attempts = self.grant, self.chosen.deployment, 1
        return tap

    @property
    def slot(self) -> Slot:
        """The slot, which is released by it from now on."""
        slot = self._slot
        if slot is None:
            slot = self._slot = self.chosen.access.slot(self.ticket)
        return slot

    @property
    def end_due(self) -> float:
        """When the whole answer must have come, in the event loop's time."""
        return self.asked_time + self.timeouts.total

    def request(self) -> Request:
        """Return the whole request, for the ordinary way."""
        request = Request(self.client, "POST", self.known.plan.target, dict(self.known.headers), minor=1, stays=True)
        request.feed(self.body)
        request.end()
        return request

    def answer_by_task(
        self,
        request: Request,
        answer: Callable[[], Awaitable[Answer]],
        *,
        closing: PooledAnswer | None = None,
        has_begun: bool = False,
    ) -> None:
        """Have a task answer the request.

        Parameters
        ----------
        request
            The request.
        answer
            Gives the answer.
        closing
            The deployment's answer, which is closed when the task has ended, as is what this exchange holds.
        has_begun
            Whether some of the answer has been sent to the client.
        """

        async def handle(request: Request) -> Answer:
            return await run(request, self.tap, answer)

        self.client.answer_by(partial(self.router.serve_by, handle), request, has_begun=has_begun)
        if closing is not None:
            assert self.client.task is not None
            self.client.task.add_done_callback(lambda _: self._close(closing))

    def fail(self, error: Exception, *, has_begun: bool = False) -> None:
        """Have the ordinary way log an error, and answer or cut the exchange."""
        self.slot.release(BreakerVerdict.NONE)

        async def raise_error() -> Answer:
            raise error

        self.answer_by_task(self.request(), raise_error, has_begun=has_begun)

    def _close(self, answer: PooledAnswer) -> None:
        """Release everything if the task was cancelled before its first step; otherwise this has been done."""
        answer.close()
        self.tap.end(*DISCONNECTED)
        self.slot.release(BreakerVerdict.NONE)

"""Hold a plan while its calls are sent through the gateway, and wait until their exchanges are in the store."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

import httpx2
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess, pinned_model
from auditor.config import Config, Deployment
from auditor.domain.exchange import Origin
from auditor.errors import AuditError, StoreUnavailable, UsageError
from auditor.probes.forecast import CallTokens, in_flight
from auditor.probes.send import CallTarget, Outgoing, Patience, RunBudget, Sender, Tally
from auditor.store.engine import store_errors, transaction
from auditor.store.plans import count_as_answered, lock_plan

_SERIES: Final = re.compile(r"^biasmeter_spool_(bytes|oldest_seconds)(?:\{\})? (\S+)$", re.MULTILINE)
_LOOK_EVERY: Final = 0.2
#: Seconds after which a spool that does not empty counts as stuck.
PATIENCE: Final = 60.0
#: Seconds of tolerance for differences of clocks and rounding.
_SLACK: Final = 0.5


async def wait_until_shipped(
    client: httpx2.AsyncClient,
    access: GatewayAccess,
    patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until everything that the gateway recorded before this call is in the store.

    Clients may continue, so the spool need not be empty: its oldest record must be newer than this call.

    Raises
    ------
    StoreUnavailable
        The spool does not empty: the store is away, or the shipper.
    AuditError
        The gateway does not answer.
    """
    began = clock()
    while True:
        size, age = await _read_backlog(client, access)
        waited = clock() - began
        if size == 0 or (age is not None and age + _SLACK < waited):
            return
        if waited > patience:
            raise StoreUnavailable(
                f"{size:.0f} bytes wait in the spool of the gateway at {access.url} and do not reach the store"
            )
        await asyncio.sleep(_LOOK_EVERY)


async def _read_backlog(client: httpx2.AsyncClient, access: GatewayAccess) -> tuple[float, float | None]:
    url = access.url.removesuffix("/").removesuffix("/v1") + "/metrics"
    try:
        answer = await client.get(url)
        answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise AuditError(
            f"the gateway at {access.url} does not answer: {type(error).__name__} {error}".strip()
        ) from error
    series = {name: float(value) for name, value in _SERIES.findall(answer.text)}
    if "bytes" not in series:
        raise AuditError(f"{url} does not name biasmeter_spool_bytes; is this a biasmeter gateway?")
    return series["bytes"], series.get("oldest_seconds")


#: Seconds added to a deployment's own timeout, so that the gateway answers first.
_MARGIN: Final = 30.0


class PlanHeld(UsageError):  # noqa: N818 -- a state, not a bug
    """Another process is sending this plan."""


def target_of(config: Config, deployment: Deployment, share: float, origin: Origin = Origin.PROBE) -> CallTarget:
    """Return the settings for calls to a deployment.

    Raises
    ------
    UsageError
        Neither the deployment nor a route of its own names a model.
    """
    return CallTarget(
        deployment=deployment.name,
        model=pinned_model(config, deployment),
        in_flight=in_flight(deployment, share),
        timeout=config.timeouts_for(deployment).total + _MARGIN,
        price=lambda prompt, completion: CallTokens(prompt=prompt, completion=completion).price_at(deployment) or 0.0,
        origin=origin,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """The exclusive right to send the calls of one plan, with the connections to the gateway."""

    engine: AsyncEngine
    access: GatewayAccess
    client: httpx2.AsyncClient
    patience: Patience = field(default_factory=Patience)

    async def send(
        self,
        calls: Sequence[tuple[CallTarget, Iterable[Outgoing]]],
        budget: RunBudget,
        on_end: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Tally]:
        """Send these calls to all deployments in parallel; ``on_end`` gets the deployment of each ended call.

        Raises
        ------
        UsageError
            The gateway refuses our key or one of our headers. Earlier answers are kept.
        StoreUnavailable
            A provider's block cannot be counted.
        """
        senders = {
            target.deployment: Sender(
                self.client,
                self.access,
                target,
                budget,
                patience=self.patience,
                on_end=partial(on_end, target.deployment),
                on_block=self._count_block,
            )
            for target, _ in calls
        }
        sending = [senders[target.deployment].send(outgoing) for target, outgoing in calls]
        ended = await asyncio.gather(*sending, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, BaseException):
                raise outcome
        return {name: sender.tally for name, sender in senders.items()}

    async def _count_block(self, ref: str, exchange_id: UUID) -> None:
        """Count a provider's block as an answer. Without this only complete exchanges count.

        This is done immediately, because a killed run asks all uncounted calls again.
        """
        async with transaction(self.engine) as connection:
            await count_as_answered(connection, {ref: exchange_id})


@asynccontextmanager
async def open_session(
    engine: AsyncEngine,
    access: GatewayAccess,
    name: str,
    targets: Iterable[CallTarget],
    patience: Patience | None = None,
) -> AsyncIterator[Session]:
    """Hold a plan exclusively. All sent calls are in the store at the start of the block, and again at its end.

    Raises
    ------
    PlanHeld
        Another process holds the plan.
    AuditError
        The gateway does not answer.
    StoreUnavailable
        The store does not answer, or the gateway's spool does not reach it.
    """
    async with _sole_sender(engine, name), _open_client(targets) as client:
        await wait_until_shipped(client, access)
        yield Session(engine=engine, access=access, client=client, patience=patience or Patience())
        await wait_until_shipped(client, access)


@asynccontextmanager
async def _sole_sender(engine: AsyncEngine, name: str) -> AsyncIterator[None]:
    """Lock the plan, because two senders would ask everything twice. The lock ends with this process."""
    with store_errors():
        connection = await engine.connect()
    try:
        with store_errors():
            locked = await lock_plan(connection, name)
        if not locked:
            raise PlanHeld(f"plan {name} is being sent by another process")
        yield
    finally:
        with suppress(OSError, SQLAlchemyError):  # the store may have stopped meanwhile, which releases the lock
            await connection.close()


@asynccontextmanager
async def _open_client(targets: Iterable[CallTarget]) -> AsyncIterator[httpx2.AsyncClient]:
    """Open the connections to the gateway that these targets need."""
    connections = sum(target.in_flight for target in targets) + 1
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    # Ignore proxies of the environment, because the gateway is ours. Each call has its own timeout.
    async with httpx2.AsyncClient(limits=limits, timeout=httpx2.Timeout(None, connect=10.0), trust_env=False) as client:
        yield client

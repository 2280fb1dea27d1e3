"""Sending planned calls of any origin: who is asked and how, one process at a time, and only what the store lacks.

Which calls are answered is asked of the store alone, after the gateway has shipped what it holds; so a process that was
killed repeats at most what it had under way. ``send`` talks to the gateway.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

import httpx
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.config.models import ANY_MODEL
from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from auditor.probes.drain import wait_until_shipped
from auditor.probes.estimate import Usage, in_flight
from auditor.probes.purse import Purse
from auditor.probes.send import Outgoing, Patience, Sender, Tally, Target
from auditor.store.engine import reading
from auditor.store.plans import count_as_answered, lock_plan

#: Seconds beyond a deployment's own time-out: the gateway answers first.
_MARGIN: Final = 30.0


class PlanHeld(UsageError):  # noqa: N818 -- a state, not a bug
    """Another process is sending this plan."""


def asked_model(config: Config, deployment: Deployment) -> str:
    """Give the model to ask for so that the gateway finds a route; the pin decides who answers.

    Raises
    ------
    UsageError
        Neither the deployment nor a route of its own names a model.
    """
    own = [route.model for route in config.routes if deployment.name in {one.name for one in route.deployments}]
    named = [model for model in own if model != ANY_MODEL]
    if named:
        return named[0]
    if deployment.model is None:
        raise UsageError(f"deployment {deployment.name!r} names no model to ask for; set deployments[].model")
    every = [route.model for route in config.routes]
    return deployment.model if ANY_MODEL in every else every[0]


def target_of(config: Config, deployment: Deployment, share: float, origin: Origin = Origin.PROBE) -> Target:
    """Say how a deployment is asked.

    Raises
    ------
    UsageError
        It cannot be asked for: neither it nor a route of its own names a model.
    """
    return Target(
        deployment=deployment.name,
        model=asked_model(config, deployment),
        in_flight=in_flight(deployment, share),
        timeout=config.timeouts_for(deployment).total + _MARGIN,
        price=lambda prompt, completion: Usage(prompt=prompt, completion=completion).price_at(deployment) or 0.0,
        origin=origin,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """The right to send the calls of one plan, and the way to the gateway."""

    engine: AsyncEngine
    access: GatewayAccess
    client: httpx.AsyncClient
    patience: Patience = field(default_factory=Patience)

    async def send(
        self,
        calls: Sequence[tuple[Target, Iterable[Outgoing]]],
        purse: Purse,
        on_end: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Tally]:
        """Send these calls, to all deployments at once; ``on_end`` is told the deployment of each that has ended.

        Raises
        ------
        UsageError
            The gateway refuses our key, or a header of ours; what was sent until then is kept.
        StoreUnavailable
            A provider's block cannot be counted.
        """
        senders = {
            target.deployment: Sender(
                self.client,
                self.access,
                target,
                purse,
                patience=self.patience,
                on_end=partial(on_end, target.deployment),
                on_block=self._count_block,
            )
            for target, _ in calls
        }
        sending = [senders[target.deployment].send(outgoing) for target, outgoing in calls]
        ended = await asyncio.gather(*sending, return_exceptions=True)
        for one in ended:
            if isinstance(one, BaseException):
                raise one
        return {name: sender.tally for name, sender in senders.items()}

    async def _count_block(self, ref: str, exchange_id: UUID) -> None:
        """Let a provider's block count: it is an answer, but only complete exchanges count by themselves.

        At once, for a run that is killed asks again what does not count.
        """
        async with reading(self.engine) as connection:
            await count_as_answered(connection, ref, exchange_id)


@asynccontextmanager
async def open_session(
    engine: AsyncEngine, access: GatewayAccess, name: str, targets: Iterable[Target], patience: Patience | None = None
) -> AsyncIterator[Session]:
    """Hold a plan alone; all that was sent is in the store at the beginning of the block, and again at its end.

    Raises
    ------
    PlanHeld
        Another process holds the plan.
    AuditError
        The gateway does not answer.
    StoreUnavailable
        The store does not answer, or what the gateway holds does not reach it.
    """
    async with _sole_sender(engine, name), _open_client(targets) as client:
        await wait_until_shipped(client, access)
        yield Session(engine=engine, access=access, client=client, patience=patience or Patience())
        await wait_until_shipped(client, access)


@asynccontextmanager
async def _sole_sender(engine: AsyncEngine, name: str) -> AsyncIterator[None]:
    """Hold the plan: two senders would ask everything twice. The store lets go when this process is gone."""
    async with reading(engine):  # tells a store that is away in its own words
        pass
    connection = await engine.connect()
    try:
        if not await lock_plan(connection, name):
            raise PlanHeld(f"plan {name} is being sent by another process")
        yield
    finally:
        with suppress(OSError, SQLAlchemyError):  # the store may have gone meanwhile, and the lock with it
            await connection.close()


@asynccontextmanager
async def _open_client(targets: Iterable[Target]) -> AsyncIterator[httpx.AsyncClient]:
    """Open the connections to the gateway that these targets need."""
    connections = sum(target.in_flight for target in targets) + 1
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    # The gateway is ours: no proxy of the environment stands between. Each call has a time-out of its own.
    async with httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(None, connect=10.0), trust_env=False) as client:
        yield client

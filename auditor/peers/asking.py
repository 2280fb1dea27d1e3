"""Ask a domain's questions of its deployments, through the gateway, as a plan of probes.

A round is one pass over the questions. Passes are counted from 1970 in steps of ``every``, so every process computes
the same round. Running it again sends only the questions that have no answer.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from auditor.config import Deployment
from auditor.config.audits import PeerDomain
from auditor.domain.question import Message
from auditor.errors import AuditError
from auditor.peers.domains import Domain, PeerQuestion, configured_domain
from auditor.probes.forecast import free_text_usage
from auditor.probes.plan import hash_id
from auditor.probes.run import RunLimits, Runner, RunResult, ended_of, open_budget
from auditor.probes.send import CallTarget, Outgoing
from auditor.probes.session import PlanHeld, open_session, target_of
from auditor.probes.timed import describe, resting
from auditor.store.engine import transaction
from auditor.store.peers import PeerCall, add_calls, add_round, answered_refs, read_round_spent

log = logging.getLogger(__name__)

#: Changes when the same domain and pass give other calls.
_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Round:
    """One pass over a domain's questions; the same domain, pass and seed make the same round."""

    domain: Domain
    number: int
    seed: int = 0

    @cached_property
    def id(self) -> str:
        """The id in the store; it changes with any word of the questions."""
        return f"peers-{hash_id(_VERSION, self.domain.digest, self.number, self.seed, size=6)}"

    @cached_property
    def questions(self) -> tuple[PeerQuestion, ...]:
        """The questions in the order of sending; a round that stops early has asked a random sample of them."""
        return tuple(sorted(self.domain.questions, key=lambda question: hash_id(self.id, question.id)))

    def call(self, deployment: str, question: PeerQuestion) -> PeerCall:
        """Return the id of the call that asks a deployment a question."""
        ref = f"{self.id}.{hash_id(deployment, question.id, size=12)}"
        return PeerCall(ref=ref, deployment=deployment, question_id=question.id)

    def outgoing(self, target: CallTarget, answered: Collection[str]) -> Iterator[Outgoing]:
        """Yield the unanswered calls to a deployment, each made when it is sent."""
        for question in self.questions:
            ref = self.call(target.deployment, question).ref
            if ref not in answered:
                messages = (Message(role="user", content=question.text),)
                usage = free_text_usage(messages)
                yield Outgoing(ref=ref, messages=messages, usd=target.price(usage.prompt, usage.completion))


def current_round(settings: PeerDomain, seed: int, now: float) -> Round:
    """Return the round of a configured domain at a time, in seconds after 1970.

    Raises
    ------
    UsageError, InputError
        Its questions cannot be read.
    """
    return Round(domain=configured_domain(settings), number=int(now // settings.every), seed=seed)


async def ask(
    runner: Runner, peer_round: Round, deployments: Iterable[Deployment], *, limits: RunLimits, share: float
) -> tuple[RunResult, ...]:
    """Send the unanswered questions of a round to these deployments, concurrently.

    Raises
    ------
    PlanHeld
        Another process is sending this round.
    UsageError
        A deployment names no model, or the gateway refuses probes.
    AuditError
        The gateway does not answer.
    StoreUnavailable
        The store does not answer, or what the gateway holds does not reach it.
    """
    chosen = tuple(deployments)
    targets = [target_of(runner.config, deployment, share) for deployment in chosen]
    async with open_session(runner.engine, runner.access, peer_round.id, targets, runner.patience) as session:
        before = await _store(runner, peer_round, chosen)
        async with transaction(runner.engine) as connection:
            spent = await read_round_spent(connection, peer_round.id)
        calls = [(target, peer_round.outgoing(target, before.get(target.deployment, ()))) for target in targets]
        tallies = await session.send(calls, open_budget(limits, runner.config.deployments, spent))
    async with transaction(runner.engine) as connection:
        after = await answered_refs(connection, peer_round.id)
    size = len(peer_round.questions)
    return tuple(
        ended_of(name, size, len(before.get(name, ())), len(after.get(name, ())), tally)
        for name, tally in tallies.items()
    )


async def _store(runner: Runner, peer_round: Round, deployments: Iterable[Deployment]) -> Mapping[str, set[str]]:
    """Store the round and the calls of these deployments; return the answered calls."""
    domain = peer_round.domain
    settings = {
        "version": domain.version,
        "digest": domain.digest,
        "number": peer_round.number,
        "seed": peer_round.seed,
    }
    rows = [
        {"id": question.id, "theme": question.theme, "question": question.text} for question in peer_round.questions
    ]
    calls = [
        peer_round.call(deployment.name, question) for deployment in deployments for question in peer_round.questions
    ]
    async with transaction(runner.engine) as connection:
        await add_round(connection, peer_round.id, domain.name, rows, settings, runner.now())
        await add_calls(connection, peer_round.id, calls)
        return await answered_refs(connection, peer_round.id)


async def ask_due(runner: Runner) -> tuple[RunResult, ...]:
    """Run the unanswered part of the current round of every configured domain, one domain after the other.

    May be called as often as wanted, by any number of processes: a round has one sender at a time.

    Raises
    ------
    AuditError
        A domain could not be asked: the first of those; all were tried.
    """
    ended: list[RunResult] = []
    failures: list[AuditError] = []
    for settings in runner.config.peers:
        try:
            peer_round = current_round(settings, runner.config.seed, runner.now().timestamp())
            ended += await _ask_open(runner, settings, peer_round)
        except PlanHeld:
            continue
        except AuditError as error:
            failures.append(AuditError(f"{settings.domain}: {error}"))
    if failures:
        raise failures[0]
    return tuple(ended)


async def _ask_open(runner: Runner, settings: PeerDomain, peer_round: Round) -> tuple[RunResult, ...]:
    deployments = await _open(runner, settings, peer_round)
    if not deployments:
        return ()
    limits = RunLimits(calls=settings.budget.calls, usd=settings.budget.usd)
    ended = await ask(runner, peer_round, deployments, limits=limits, share=settings.share)
    for result in ended:
        log.info("peers of %s at %s: %s", settings.domain, result.deployment, describe(result))
    return ended


async def _open(runner: Runner, settings: PeerDomain, peer_round: Round) -> tuple[Deployment, ...]:
    """Return the deployments that have unanswered questions and have not just failed."""
    async with transaction(runner.engine) as connection:
        answered = await answered_refs(connection, peer_round.id)
        spent = await read_round_spent(connection, peer_round.id)
    if sum(usage.calls for usage in spent.values()) >= settings.budget.calls:
        return ()
    left_alone = resting(spent, runner.now())
    return tuple(
        deployment
        for deployment in runner.config.deployments
        if deployment.name in settings.deployments
        and deployment.name not in left_alone
        and len(answered.get(deployment.name, ())) < len(peer_round.questions)
    )

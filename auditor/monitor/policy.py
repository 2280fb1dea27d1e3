"""Decide what findings do to routes: which actions begin, are renewed and end. Pure functions.

An action ends when its finding is answered, silenced or no longer shown by the newest days, when it expires, and when
its policy or its peers are gone. Whoever decides again with the result decides nothing new.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from typing import Final, Literal

from auditor.config import FindingPolicy, Route
from auditor.domain.actions import KEPT, effective_weights
from auditor.store.actions import StoredAction

#: What the newest days say about the change of a finding.
ChangeState = Literal["present", "recovered", "unknown"]

ANSWERED: Final = "the finding is answered"
SILENCED: Final = "the finding is silenced"
RECOVERED: Final = "the newest days no longer show the change"
EXPIRED: Final = "expired"
NO_POLICY: Final = "the configuration no longer asks for it"
NO_PEER: Final = "a peer has a finding of its own, or left the route"

_DAY: Final = timedelta(days=1)
#: A smaller share of a route is not worth an action.
_LEAST_SHARE: Final = 0.001
#: Levels of findings that say something about the deployment itself.
_DEPLOYMENT_LEVELS: Final = ("page", "investigate")


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingEvidence:
    """An unanswered finding, and what the newest days say about it."""

    finding_id: str
    deployment: str
    level: str
    silenced: bool
    day: date  #: the newest day
    states: Mapping[int, ChangeState]  #: states by the number of days without the change that mean recovery
    n: int  #: answers that the newest change was computed from; 0 if it is unknown
    coverage: float  #: share of answers that could be coded


@dataclass(frozen=True, kw_only=True, slots=True)
class Begin:
    """An action begins."""

    action: StoredAction


@dataclass(frozen=True, kw_only=True, slots=True)
class Renew:
    """An action lasts longer; ``action`` has the new day and end."""

    action: StoredAction


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """An action ends."""

    action: StoredAction
    because: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A policy applies, and does nothing for a reason."""

    finding_id: str
    route: str
    policy: FindingPolicy
    because: str


Step = Begin | Renew | End | Held


def decide(
    routes: Sequence[Route], findings: Sequence[FindingEvidence], actions: Sequence[StoredAction], now: datetime
) -> list[Step]:
    """Return what to do now.

    Parameters
    ----------
    routes
        The configuration's.
    findings
        All unanswered findings, the oldest first.
    actions
        Those in force, those of the last 24 hours, and all of these findings, the oldest first.
    now
        The time.
    """
    by_id = {finding.finding_id: finding for finding in findings}
    steps: list[Step] = []
    kept: list[StoredAction] = []
    known: list[StoredAction] = []  # all actions, as they are after the steps so far
    for action in actions:
        if action.ended_at is not None:
            known.append(action)
            continue
        changed = _go_on(routes, by_id, action, now)
        if changed is not None:
            steps.append(changed)
        if isinstance(changed, End):
            known.append(replace(action, ended_at=now, ended_because=changed.because))
        else:
            kept.append(action if changed is None else changed.action)
            known.append(kept[-1])
    for beginning in _beginnings(routes, by_id, kept, known, now):
        steps.append(beginning)
        if isinstance(beginning, Begin):
            kept.append(beginning.action)
            known.append(beginning.action)
    return steps


def _go_on(
    routes: Sequence[Route], findings: Mapping[str, FindingEvidence], action: StoredAction, now: datetime
) -> Renew | End | None:
    """Return the end or the renewal of an action in force, or None if it goes on as it is."""
    finding = findings.get(action.finding_id)
    route = next((entry for entry in routes if entry.model == action.route), None)
    policy = None if route is None else _policy_of(route, action)
    because = None
    if finding is None:
        because = ANSWERED
    elif action.expires_at <= now:
        because = EXPIRED
    elif route is None or policy is None:
        because = NO_POLICY
    elif finding.silenced:
        because = SILENCED
    elif finding.states[policy.recovered_after] == "recovered":
        because = RECOVERED
    elif policy.action == "shift_weight" and not set(action.to) <= set(
        _healthy(route, policy, action.deployment, findings.values())
    ):
        because = NO_PEER
    if because is not None:
        return End(action=action, because=because)
    assert finding is not None
    assert policy is not None
    is_shown = finding.states[policy.recovered_after] == "present" and _refusal(finding, policy) is None
    if not is_shown or finding.day <= action.evidence_day:
        return None
    expires_at = now + timedelta(seconds=policy.expires)
    return Renew(action=replace(action, evidence_day=finding.day, expires_at=expires_at))


def _policy_of(route: Route, action: StoredAction) -> FindingPolicy | None:
    wanted = (action.level, action.kind, action.dry_run)
    return next(
        (policy for policy in route.on_finding if (policy.level, policy.action, policy.dry_run) == wanted), None
    )


def _beginnings(
    routes: Sequence[Route],
    findings: Mapping[str, FindingEvidence],
    kept: list[StoredAction],
    known: list[StoredAction],
    now: datetime,
) -> Iterator[Begin | Held]:
    """Yield the actions that begin. The lists are read again after each, because the caller adds it to them."""
    for route in routes:
        serving = {member.name for member in route.deployments if member.weight > 0}
        for policy in route.on_finding:
            for finding in findings.values():
                if finding.level != policy.level or finding.deployment not in serving or finding.silenced:
                    continue
                if finding.states[policy.recovered_after] != "present" or _is_done(route, policy, finding, kept, known):
                    continue
                begun = _begin(route, policy, finding, findings, kept, known, now)
                if isinstance(begun, str):
                    yield Held(finding_id=finding.finding_id, route=route.model, policy=policy, because=begun)
                else:
                    yield Begin(action=begun)


def _is_done(
    route: Route,
    policy: FindingPolicy,
    finding: FindingEvidence,
    kept: Sequence[StoredAction],
    known: Sequence[StoredAction],
) -> bool:
    """Return whether the action is in force already, or has ended in a way after which it does not begin again."""
    same = [action for action in kept if (action.route, action.kind) == (route.model, policy.action)]
    if any(action.deployment == finding.deployment or policy.action == "stop_sampling" for action in same):
        return True
    ended = [
        action
        for action in known
        if (action.route, action.kind, action.finding_id) == (route.model, policy.action, finding.finding_id)
    ]
    return any(action.ended_because == RECOVERED for action in ended) or any(
        action.ended_because == EXPIRED and finding.day <= action.evidence_day for action in ended
    )


def _begin(
    route: Route,
    policy: FindingPolicy,
    finding: FindingEvidence,
    findings: Mapping[str, FindingEvidence],
    kept: Sequence[StoredAction],
    known: Sequence[StoredAction],
    now: datetime,
) -> StoredAction | str:
    """Return the action that begins, or why none does."""
    refused = _refusal(finding, policy)
    if refused is not None:
        return refused
    begun = [action for action in known if (action.route, action.kind) == (route.model, policy.action)]
    if sum(action.began_at > now - _DAY for action in begun) >= policy.per_day:
        return f"{policy.per_day} actions have begun within 24 hours (per_day)"
    to: tuple[str, ...] = ()
    share = 0.0
    if policy.action == "shift_weight":
        to = _healthy(route, policy, finding.deployment, findings.values())
        if not to:
            return "every peer has a finding of its own"
        share = _share(route, policy, finding.deployment, [action for action in kept if action.route == route.model])
        if share < _LEAST_SHARE:
            return "the largest share is moved already (share)"
    return StoredAction(
        id=_action_id(finding.finding_id, route.model, policy.action, now.isoformat()),
        finding_id=finding.finding_id, route=route.model, deployment=finding.deployment, level=policy.level,
        kind=policy.action, to=to, share=share, dry_run=policy.dry_run, began_at=now, evidence_day=finding.day,
        expires_at=now + timedelta(seconds=policy.expires),
    )  # fmt: skip


def _refusal(finding: FindingEvidence, policy: FindingPolicy) -> str | None:
    """Return why the numbers behind a finding are too few to act on, or None."""
    if finding.n < policy.min_answers:
        return f"{finding.n} answers, {policy.min_answers} needed (min_answers)"
    if finding.coverage < policy.min_coverage:
        coded = f"{100 * finding.coverage:.0f} % of the answers are coded"
        return f"{coded}, {100 * policy.min_coverage:g} % needed (min_coverage)"
    return None


def _healthy(
    route: Route, policy: FindingPolicy, deployment: str, findings: Iterable[FindingEvidence]
) -> tuple[str, ...]:
    """Return the peers that may get weight: those asked for, without a finding of their own that still shows."""
    changed = {
        finding.deployment
        for finding in findings
        if finding.level in _DEPLOYMENT_LEVELS and finding.states[policy.recovered_after] != "recovered"
    }
    names = [member.name for member in route.deployments if member.name != deployment]
    return tuple(name for name in names if name not in changed and (not policy.to or name in policy.to))


def _share(route: Route, policy: FindingPolicy, deployment: str, kept: Sequence[StoredAction]) -> float:
    """Return the part of the route's requests that may move: what the deployment has, within the policy's bound."""
    weights = effective_weights(
        {member.name: member.weight for member in route.deployments}, [action.on_route() for action in kept]
    )
    movable = weights[deployment] / sum(weights.values()) * (1 - KEPT)
    return min(movable, policy.share - sum(action.share for action in kept))


def _action_id(*parts: str) -> str:
    return f"action_{blake2b(chr(0).join(parts).encode(), digest_size=8).hexdigest()}"

"""What a plan will take at a deployment: calls, tokens, money, time, and the smallest shift it can show.

Estimates, made before anything is sent. Tokens are counted from characters, for no tokenizer is known here; what was
really used stands in the store. ``detectable`` has the statistics.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from auditor.config import Deployment
from auditor.domain.condition import Task
from auditor.probes.detectable import FEWEST_STATEMENTS, TYPICAL, Assumptions, half_width, smallest_shift
from auditor.probes.plan import Item, Planned

#: Characters a token in English prose, and what each message and request adds: rules of thumb, right within a fifth.
_CHARACTERS: Final = 4
_PER_MESSAGE: Final = 4
_PER_REQUEST: Final = 3
#: Tokens of an answer: free text, a rating with its reason, a choice with one sentence of reason, a bare choice.
_FREE_TEXT: Final = 300
_RATING: Final = 90
_REASON: Final = 60
_BARE: Final = 8
#: Seconds until an answer begins, and tokens a second from then on, of an ordinary hosted model.
_LATENCY: Final = 0.6
_SPEED: Final = 50.0

#: Calls in flight to a deployment that declares no concurrency.
UNDECLARED: Final = 4
#: Share of a declared concurrency that probes take (INTERFACE, ``probes``).
SHARE: Final = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one or many calls."""

    prompt: int
    completion: int

    def price_at(self, deployment: Deployment) -> float | None:
        """Give its price in USD; ``None`` where the deployment declares no price."""
        price = deployment.price
        if price is None:
            return None
        return (self.prompt * price.input + self.completion * price.output) / 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What a plan will take at one deployment. What cannot be known is None; ``unknown`` says why."""

    deployment: str
    calls: int
    usage: Usage
    usd: float | None
    seconds: float
    in_flight: int
    statements: int
    smallest_shift: float | None  #: of the rate over all conditions, between two passes
    smallest_shift_condition: float | None  #: of the rate in the condition with the fewest answers
    half_width: float | None  #: of one pass, over all conditions
    unknown: dict[str, str]


def in_flight(deployment: Deployment, share: float) -> int:
    """Give how many calls may be under way at once: a share of the declared concurrency, at least one."""
    if deployment.concurrency is None:
        return UNDECLARED
    return max(1, int(deployment.concurrency * share))


def call_usage(item: Item) -> Usage:
    """Estimate the tokens of one call."""
    messages = item.messages
    prompt = sum(-(-len(one.content) // _CHARACTERS) + _PER_MESSAGE for one in messages) + _PER_REQUEST
    return Usage(prompt=prompt, completion=_completion(item))


def _completion(item: Item) -> int:
    if not item.condition.task.has_selection:
        return _FREE_TEXT
    if item.condition.task is Task.RATE:
        return _RATING
    return _REASON if item.template.invites_reason else _BARE


def estimate(
    planned: Planned, deployments: Iterable[Deployment], share: float = SHARE, assumed: Assumptions = TYPICAL
) -> tuple[Estimate, ...]:
    """Estimate the whole plan at each of these deployments, whatever of it has been answered already."""
    usages = [call_usage(item) for item in planned.items]
    total = Usage(prompt=sum(one.prompt for one in usages), completion=sum(one.completion for one in usages))
    busy = sum(_LATENCY + one.completion / _SPEED for one in usages)
    statements = len(planned.statements)
    per_statement = len(planned.items) / statements
    # Every condition asks all statements, so the thinnest one has the fewest answers a statement.
    thinnest = min(Counter(item.condition for item in planned.items).values()) / statements
    shift = smallest_shift(statements, per_statement, assumed)
    return tuple(
        Estimate(
            deployment=one.name,
            calls=len(planned.items),
            usage=total,
            usd=total.price_at(one),
            seconds=busy / in_flight(one, share),
            in_flight=in_flight(one, share),
            statements=statements,
            smallest_shift=shift,
            smallest_shift_condition=smallest_shift(statements, thinnest, assumed),
            half_width=half_width(statements, per_statement, assumed),
            unknown=_unknown(one, statements, shift),
        )
        for one in deployments
    )


def _unknown(deployment: Deployment, statements: int, shift: float | None) -> dict[str, str]:
    reasons = {}
    if deployment.price is None:
        reasons["usd"] = "the deployment declares no price"
    if shift is None:
        reasons["smallest_shift"] = f"under {FEWEST_STATEMENTS} statements ({statements})"
    return reasons

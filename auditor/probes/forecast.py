"""Forecast the use of a plan at a deployment: calls, tokens, cost, time, and the smallest shift it can detect.

Nothing is sent. Every prompt is built, and its tokens are estimated from characters, because the tokenizer is unknown.
The tokens of an answer are the mean of earlier answers to such questions, or assumed if there are none.
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from auditor.config import Config, Deployment
from auditor.documents.audits import PlanCostEntry
from auditor.documents.base import or_unset
from auditor.domain.question import Message
from auditor.instrument.formats import format_of
from auditor.probes.plan import PlanItem, Planned
from auditor.stats.intervals import t_quantile, z_quantile
from auditor.store.plans import AnswerStats, AnswerStatsByKind, Kind

#: The least number of statements for a forecast (INSTRUMENT section 3, floors).
FEWEST_STATEMENTS: Final = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumptions:
    """Assumed values that are unknown before a plan has run. Rate and ICC are from the design study (MONITORING)."""

    rate: float = 0.29  #: share of endorsing answers, in (0, 1); nearer to 0 or 1 fewer answers suffice
    icc: float = 0.3  #: share of an answer's variance that lies between statements, in [0, 1)
    alpha: float = 0.05  #: two-sided
    power: float = 0.8


TYPICAL: Final = Assumptions()


def smallest_shift(statements: int, per_statement: float, assumed: Assumptions = TYPICAL) -> float | None:
    """Return the smallest change of a rate between two passes of the same plan that a paired test detects.

    MONITORING sections 1 and 5: both passes have the same statements, so differences between statements cancel, and
    only the variance within statements remains: ``V = 2 p (1 - p) (1 - icc) / (G m)``. The shift is ``(t(G-1, 1 -
    alpha/2) + z(power)) sqrt(V)``. It is assumed to be equal for all statements; ``m`` counts answers that have the
    metric (a rate on the eligible base has fewer).

    Parameters
    ----------
    statements
        G, clusters; at least 15.
    per_statement
        m, answers per statement and pass, > 0.

    Returns
    -------
    float or None
        Difference of two rates, in (0, 1]; ``None`` under the floor of 15 statements.

    Examples
    --------
    100 statements, 3 answers each: sqrt(2 x .29 x .71 x .7 / 300) = .0310, times 1.984 + .842 is .0876.

    >>> round(smallest_shift(100, 3), 4)
    0.0876
    """
    if statements < FEWEST_STATEMENTS or per_statement <= 0:
        return None
    variance = 2 * assumed.rate * (1 - assumed.rate) * (1 - assumed.icc) / (statements * per_statement)
    reach = t_quantile(1 - assumed.alpha, statements - 1) + z_quantile(2 * assumed.power - 1)
    return min(1.0, reach * math.sqrt(variance))


def half_width(statements: int, per_statement: float, assumed: Assumptions = TYPICAL) -> float | None:
    """Return the half-width of a rate's interval after one pass.

    MONITORING section 5: ``n = z^2 p (1 - p) / h^2 (1 + (m - 1) icc)``, solved for h, with t(G-1) for z.

    Parameters
    ----------
    statements
        G, clusters; at least 15.
    per_statement
        m, answers per statement, > 0.

    Returns
    -------
    float or None
        Half-width in (0, 1]; ``None`` under the floor of 15 statements.

    Examples
    --------
    100 statements, 1 answer each: 1.984 x sqrt(.29 x .71 / 100) = .0900.

    >>> round(half_width(100, 1), 4)
    0.09
    """
    if statements < FEWEST_STATEMENTS or per_statement <= 0:
        return None
    inflation = 1 + max(per_statement - 1, 0) * assumed.icc
    variance = assumed.rate * (1 - assumed.rate) * inflation / (statements * per_statement)
    return min(1.0, t_quantile(1 - assumed.alpha, statements - 1) * math.sqrt(variance))


#: Approximate characters per token in English prose, and tokens added by each message and request; error about 20 %.
_CHARACTERS: Final = 4
_PER_MESSAGE: Final = 4
_PER_REQUEST: Final = 3
#: Tokens of an answer: free text, a rating with its reason, a choice with one sentence of reason, a bare choice.
_FREE_TEXT: Final = 300
#: Seconds until the first token, and tokens per second after it, of a typical hosted model.
LATENCY: Final = 0.6
SPEED: Final = 50.0
#: The least number of answers of a kind whose mean replaces the assumption.
_ENOUGH: Final = 30

#: Calls in flight to a deployment that declares no concurrency.
UNDECLARED: Final = 4
#: Share of a declared concurrency that probes take (INTERFACE, ``probes``).
SHARE: Final = 0.1
_TELL_EVERY: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTokens:
    """Tokens of one or many calls."""

    prompt: int
    completion: int

    def price_at(self, deployment: Deployment) -> float | None:
        """Return the price in USD; ``None`` if the deployment declares no price."""
        price = deployment.price
        if price is None:
            return None
        return (self.prompt * price.input + self.completion * price.output) / 1e6


#: Approximate use of one vote: a judge's question with the answer that it reads, and its verdict.
VOTE: Final = CallTokens(prompt=1000, completion=60)


def judge_deployments(config: Config) -> Mapping[str, Deployment]:
    """Return the deployments that judges ask, by the judge's name; some judges ask none."""
    declared = {deployment.name: deployment for deployment in config.deployments}
    return {judge.name: declared[judge.deployment] for judge in config.judges if judge.deployment is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanForecast:
    """The forecast use of a plan at one deployment. Unknown values are None; ``unknown`` has the reasons."""

    deployment: str
    calls: int
    usage: CallTokens
    usd: float | None
    seconds: float
    in_flight: int
    statements: int
    observed: float  #: share of the calls whose answers are estimated from earlier ones, in [0, 1]
    smallest_shift: float | None  #: smallest detectable shift of the rate over all conditions, between two passes
    smallest_shift_condition: float | None  #: smallest detectable shift of the condition with the fewest answers
    half_width: float | None  #: half-width of the rate of one pass, over all conditions
    unknown: dict[str, str]


def in_flight(deployment: Deployment, share: float) -> int:
    """Return the number of calls in flight: a share of the declared concurrency, at least one."""
    if deployment.concurrency is None:
        return UNDECLARED
    return max(1, int(deployment.concurrency * share))


def prompt_tokens(item: PlanItem) -> int:
    """Count the tokens of a question."""
    return _count_tokens(item.messages)


def _count_tokens(messages: Iterable[Message]) -> int:
    return sum(-(-len(message.content) // _CHARACTERS) + _PER_MESSAGE for message in messages) + _PER_REQUEST


def free_text_usage(messages: Iterable[Message]) -> CallTokens:
    """Estimate the tokens of a question with a free answer, at any deployment."""
    return CallTokens(prompt=_count_tokens(messages), completion=_FREE_TEXT)


def call_usage(item: PlanItem, stats: AnswerStats | None = None) -> CallTokens:
    """Estimate the tokens of one call, from statistics of earlier answers or assumed ones."""
    expected = stats or assumed_stats(kind_of(item))
    return CallTokens(prompt=prompt_tokens(item), completion=round(expected.completion_tokens))


def kind_of(item: PlanItem) -> Kind:
    """Return the kind of a question. Questions of a kind have answers of about the same length."""
    return item.template.condition.task, item.template.invites_reason


def assumed_stats(kind: Kind) -> AnswerStats:
    """Return the assumed statistics of an answer."""
    task, invites_reason = kind
    tokens = format_of(task).assumed_tokens[invites_reason]
    return AnswerStats(answers=0, completion_tokens=tokens, seconds=LATENCY + tokens / SPEED)


def stats_of(stats: AnswerStatsByKind, deployment: str, kind: Kind) -> AnswerStats:
    """Return the statistics of a deployment's earlier answers if there are enough, else the assumed ones."""
    seen = stats.get((deployment, kind))
    return seen if seen is not None and seen.answers >= _ENOUGH else assumed_stats(kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanTokens:
    """The tokens of a plan's questions in their order, so that parts can be summed for any deployment."""

    prompts: "array[int]" = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    stats: AnswerStatsByKind = field(repr=False)

    def usage(self, deployment: str, positions: Iterable[int]) -> CallTokens:
        """Add up the calls of these positions."""
        count, prompt = len(self.kinds), 0
        calls: Counter[Kind] = Counter()
        for position in positions:
            at = position % count
            prompt += self.prompts[at]
            calls[self.kinds[at]] += 1
        completion = sum(n * stats_of(self.stats, deployment, kind).completion_tokens for kind, n in calls.items())
        return CallTokens(prompt=prompt, completion=round(completion))


def count_plan_tokens(
    planned: Planned, stats: AnswerStatsByKind | None = None, on_progress: Callable[[int], None] = lambda _: None
) -> PlanTokens:
    """Build every question of a plan and count its tokens; ``on_progress`` gets the number of counted questions."""
    prompts = array("I")
    for number, item in enumerate(planned.items, start=1):
        prompts.append(prompt_tokens(item))
        if number % _TELL_EVERY == 0 or number == len(planned.items):
            on_progress(number)
    return PlanTokens(prompts=prompts, kinds=tuple(kind_of(item) for item in planned.items), stats=stats or {})


def forecast(
    planned: Planned,
    tokens: PlanTokens,
    deployments: Iterable[Deployment],
    share: float = SHARE,
    assumed: Assumptions = TYPICAL,
) -> tuple[PlanForecast, ...]:
    """Forecast the use of the whole plan at each of these deployments, including answered calls."""
    return tuple(_forecast(planned, tokens, deployment, share, assumed) for deployment in deployments)


def _forecast(
    planned: Planned, tokens: PlanTokens, deployment: Deployment, share: float, assumed: Assumptions
) -> PlanForecast:
    kinds = {kind: planned.draws * n for kind, n in Counter(tokens.kinds).items()}
    stats = {kind: stats_of(tokens.stats, deployment.name, kind) for kind in kinds}
    usage = CallTokens(
        prompt=planned.draws * sum(tokens.prompts),
        completion=round(sum(n * stats[kind].completion_tokens for kind, n in kinds.items())),
    )
    statements = len(planned.statements)
    # Every condition asks all statements, so the smallest condition has the fewest answers per statement.
    thinnest = planned.draws * min(cell.per_statement for cell in planned.cells)
    shift = smallest_shift(statements, planned.instances / statements, assumed)
    return PlanForecast(
        deployment=deployment.name,
        calls=planned.instances,
        usage=usage,
        usd=usage.price_at(deployment),
        seconds=sum(n * stats[kind].seconds for kind, n in kinds.items()) / in_flight(deployment, share),
        in_flight=in_flight(deployment, share),
        statements=statements,
        observed=sum(n for kind, n in kinds.items() if stats[kind].answers) / planned.instances,
        smallest_shift=shift,
        smallest_shift_condition=smallest_shift(statements, thinnest, assumed),
        half_width=half_width(statements, planned.instances / statements, assumed),
        unknown=_unknown(deployment, statements, shift),
    )


def _unknown(deployment: Deployment, statements: int, shift: float | None) -> dict[str, str]:
    reasons = {}
    if deployment.price is None:
        reasons["usd"] = "the deployment declares no price"
    if shift is None:
        reasons["smallest_shift"] = f"under {FEWEST_STATEMENTS} statements ({statements})"
    return reasons


def cost_entry(plan_forecast: PlanForecast) -> PlanCostEntry:
    """Return a forecast as the API shows it; what is unknown is absent, with its reason in ``unknown``."""
    return PlanCostEntry(
        deployment=plan_forecast.deployment,
        calls=plan_forecast.calls,
        prompt_tokens=plan_forecast.usage.prompt,
        completion_tokens=plan_forecast.usage.completion,
        seconds=round(plan_forecast.seconds, 1),
        in_flight=plan_forecast.in_flight,
        observed=round(plan_forecast.observed, 4),
        usd=or_unset(plan_forecast.usd),
        smallest_shift=or_unset(plan_forecast.smallest_shift),
        smallest_shift_condition=or_unset(plan_forecast.smallest_shift_condition),
        half_width=or_unset(plan_forecast.half_width),
        unknown=plan_forecast.unknown,
    )

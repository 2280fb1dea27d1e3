"""What a plan will take at a deployment: calls, tokens, money, time, and the smallest shift it can show.

Estimates, made before anything is sent. Every prompt is put together and its tokens are counted from characters, for no
tokenizer is known here; what an answer takes is what answers to such questions took so far, and assumed where there are
none. ``detectable`` has the statistics.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from auditor.config import Deployment
from auditor.domain.condition import Task
from auditor.domain.question import Message
from auditor.probes.detectable import FEWEST_STATEMENTS, TYPICAL, Assumptions, half_width, smallest_shift
from auditor.probes.plan import Item, Planned
from auditor.store.habits import Habit, Habits, Kind

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
LATENCY: Final = 0.6
SPEED: Final = 50.0
#: Answers of a kind before their mean is believed more than the assumption.
_ENOUGH: Final = 30

#: Calls in flight to a deployment that declares no concurrency.
UNDECLARED: Final = 4
#: Share of a declared concurrency that probes take (INTERFACE, ``probes``).
SHARE: Final = 0.1
_TELL_EVERY: Final = 500


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
    observed: float  #: share of the calls whose answers are estimated from earlier ones, in [0, 1]
    smallest_shift: float | None  #: of the rate over all conditions, between two passes
    smallest_shift_condition: float | None  #: of the rate in the condition with the fewest answers
    half_width: float | None  #: of one pass, over all conditions
    unknown: dict[str, str]


def in_flight(deployment: Deployment, share: float) -> int:
    """Give how many calls may be under way at once: a share of the declared concurrency, at least one."""
    if deployment.concurrency is None:
        return UNDECLARED
    return max(1, int(deployment.concurrency * share))


def prompt_tokens(item: Item) -> int:
    """Count the tokens of a question."""
    return _count_tokens(item.messages)


def _count_tokens(messages: Iterable[Message]) -> int:
    return sum(-(-len(one.content) // _CHARACTERS) + _PER_MESSAGE for one in messages) + _PER_REQUEST


def free_text_usage(messages: Iterable[Message]) -> Usage:
    """Estimate the tokens of a question that is answered freely, whoever is asked."""
    return Usage(prompt=_count_tokens(messages), completion=_FREE_TEXT)


def call_usage(item: Item, habit: Habit | None = None) -> Usage:
    """Estimate the tokens of one call; without a habit, as assumed."""
    expected = habit or assumed_habit(kind_of(item))
    return Usage(prompt=prompt_tokens(item), completion=round(expected.completion_tokens))


def kind_of(item: Item) -> Kind:
    """Tell which questions are answered at about the same length."""
    return item.template.condition.task, item.template.invites_reason


def assumed_habit(kind: Kind) -> Habit:
    """Say what an answer takes where no deployment has shown it."""
    task, invites_reason = kind
    if not task.has_selection:
        tokens = _FREE_TEXT
    elif task is Task.RATE:
        tokens = _RATING
    else:
        tokens = _REASON if invites_reason else _BARE
    return Habit(answers=0, completion_tokens=tokens, seconds=LATENCY + tokens / SPEED)


def habit_of(habits: Habits, deployment: str, kind: Kind) -> Habit:
    """Say what an answer of a deployment takes: as its earlier ones where there are enough, else as assumed."""
    seen = habits.get((deployment, kind))
    return seen if seen is not None and seen.answers >= _ENOUGH else assumed_habit(kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What the questions of a plan take, in their order, so that a part of them can be added up for any deployment."""

    prompts: "array[int]" = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    habits: Habits = field(repr=False)

    def usage(self, deployment: str, positions: Iterable[int]) -> Usage:
        """Add up the calls of these positions."""
        count, prompt = len(self.kinds), 0
        calls: Counter[Kind] = Counter()
        for position in positions:
            at = position % count
            prompt += self.prompts[at]
            calls[self.kinds[at]] += 1
        completion = sum(n * habit_of(self.habits, deployment, kind).completion_tokens for kind, n in calls.items())
        return Usage(prompt=prompt, completion=round(completion))


def forecast(
    planned: Planned, habits: Habits | None = None, on_progress: Callable[[int], None] = lambda _: None
) -> Forecast:
    """Put every question of a plan together and count it; ``on_progress`` is told how many are counted."""
    prompts = array("I")
    for number, item in enumerate(planned.items, start=1):
        prompts.append(prompt_tokens(item))
        if number % _TELL_EVERY == 0 or number == len(planned.items):
            on_progress(number)
    return Forecast(prompts=prompts, kinds=tuple(kind_of(item) for item in planned.items), habits=habits or {})


def estimate(
    planned: Planned,
    forecast: Forecast,
    deployments: Iterable[Deployment],
    share: float = SHARE,
    assumed: Assumptions = TYPICAL,
) -> tuple[Estimate, ...]:
    """Estimate the whole plan at each of these deployments, whatever of it has been answered already."""
    return tuple(_estimate(planned, forecast, one, share, assumed) for one in deployments)


def _estimate(
    planned: Planned, forecast: Forecast, deployment: Deployment, share: float, assumed: Assumptions
) -> Estimate:
    kinds = {kind: planned.draws * n for kind, n in Counter(forecast.kinds).items()}
    habits = {kind: habit_of(forecast.habits, deployment.name, kind) for kind in kinds}
    usage = Usage(
        prompt=planned.draws * sum(forecast.prompts),
        completion=round(sum(n * habits[kind].completion_tokens for kind, n in kinds.items())),
    )
    statements = len(planned.statements)
    # Every condition asks all statements, so the thinnest one has the fewest answers a statement.
    thinnest = planned.draws * min(cell.per_statement for cell in planned.cells)
    shift = smallest_shift(statements, planned.instances / statements, assumed)
    return Estimate(
        deployment=deployment.name,
        calls=planned.instances,
        usage=usage,
        usd=usage.price_at(deployment),
        seconds=sum(n * habits[kind].seconds for kind, n in kinds.items()) / in_flight(deployment, share),
        in_flight=in_flight(deployment, share),
        statements=statements,
        observed=sum(n for kind, n in kinds.items() if habits[kind].answers) / planned.instances,
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

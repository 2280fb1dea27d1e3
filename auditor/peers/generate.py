"""Questions of a domain, drafted by a deployment: themes first, then questions for each, until there are enough.

All themes are asked for at once, and their answers are taken in the themes' order: the same answers make the same
questions. What repeats an earlier question is asked for again, a few times at most. ``drafts`` has the words.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.errors import AuditError
from auditor.judges.asking import Asker, Form
from auditor.judges.configured import reach_deployment
from auditor.judges.endpoint import JudgeEndpoint
from auditor.judges.prompt import Message
from auditor.judges.reply import Invalid, Refused
from auditor.peers.domains import PeerQuestion
from auditor.peers.domains.likeness import Seen
from auditor.peers.domains.pack import record_of
from auditor.peers.drafts import PROMPTS, QUESTIONS, THEMES, Idea, question_messages, theme_messages
from auditor.probes.estimate import Usage
from auditor.rows import Record

#: How often a list is asked for, the first time included.
ROUNDS: Final = 4
#: Of the questions that are wanted, one in so many is asked for beside: some will repeat others.
_SPARE: Final = 5
#: Tokens: a rule of thumb for English, and what a theme and a question take with their JSON.
_CHARACTERS: Final = 4
_THEME_TOKENS: Final = 40
_QUESTION_TOKENS: Final = 40
_MOST_TOKENS: Final = 4096
#: Seconds beyond a deployment's own time-out: the gateway answers first.
_MARGIN: Final = 30.0

_Answer = tuple[Idea, ...] | Refused | Invalid
#: Told how many answers have come, and how many are asked for so far.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What is wanted: how many themes of how many questions, for which domain.

    The questions' ids begin with its ``name``. Another ``seed`` asks for another draft: it stands in the prompt, for
    not all servers take one.
    """

    name: str
    description: str
    themes: int
    per_theme: int
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What an order takes, estimated before anything is sent."""

    calls: int
    usage: Usage


def endpoint_of(config: Config, deployment: Deployment, access: GatewayAccess) -> JudgeEndpoint:
    """Say how the gateway is asked for drafts of a deployment: as a probe, for it is nobody's traffic.

    Raises
    ------
    ConfigError
        The deployment names no model to ask for.
    """
    reached = reach_deployment(config, deployment.name, access, name=deployment.name, role="deployment")
    return replace(
        reached,
        headers={**reached.headers, "x-tiltmeter-origin": "probe"},
        timeout=config.timeouts_for(deployment).total + _MARGIN,
        max_tokens=_MOST_TOKENS,
    )


def expected_cost(order: Order) -> Cost:
    """Estimate what an order takes if every list is answered the first time."""
    asked = _asked(order.per_theme)
    themes = _tokens(theme_messages(order.description, order.themes, "0.1"))
    questions = _tokens(question_messages(order.description, Idea(text="a theme", note=" " * 120), asked, "0.1"))
    return Cost(
        calls=1 + order.themes,
        usage=Usage(
            prompt=themes + order.themes * questions,
            completion=order.themes * (_THEME_TOKENS + asked * _QUESTION_TOKENS),
        ),
    )


def highest_cost(order: Order) -> Cost:
    """Estimate what it takes if every list is asked for as often as it may be, each time with a repair."""
    once, times = expected_cost(order), 2 * ROUNDS
    usage = Usage(prompt=times * once.usage.prompt, completion=times * once.usage.completion)
    return Cost(calls=times * once.calls, usage=usage)


async def generate(order: Order, asker: Asker, on_progress: OnProgress = lambda *_: None) -> tuple[PeerQuestion, ...]:
    """Draft the questions of a domain.

    Parameters
    ----------
    order
        What is wanted.
    asker
        The deployment.
    on_progress
        Told how far it is.

    Returns
    -------
    tuple of PeerQuestion
        ``themes`` times ``per_theme`` of them, by theme; no two with the same or nearly the same words.

    Raises
    ------
    AuditError
        There are too few themes, or questions about one of them, after ``ROUNDS``.
    JudgeUnavailable
        The deployment cannot be reached.
    """
    asking = _Asking(order, asker, on_progress)
    listed = _Shelf(name="the list of themes", wanted=order.themes, theme=Idea(text=order.name))
    await asking.fill([listed], Seen(), THEMES, asking.ask_for_themes)
    shelves = [_Shelf(name=f"the theme {one.text!r}", wanted=order.per_theme, theme=one) for one in listed.kept]
    await asking.fill(shelves, Seen(), QUESTIONS, asking.ask_for_questions)
    return tuple(
        PeerQuestion(id=f"{order.name}-{number:03}", theme=theme, text=text)
        for number, (theme, text) in enumerate(_pairs(shelves), start=1)
    )


def frozen_rows(order: Order, deployment: Deployment, questions: Sequence[PeerQuestion]) -> Iterator[Record]:
    """Give the rows of a question pack, each with how it came about; no clock, so that the same answers make the same.

    Examples
    --------
    >>> order = Order(name="press", description="Press freedom.", themes=1, per_theme=1)
    >>> asked = Deployment(name="d", base_url="http://127.0.0.1:1/v1", model="m")
    >>> (row,) = frozen_rows(order, asked, [PeerQuestion(id="press-001", theme="Law", text="Who is censored?")])
    >>> row["question"], row["deployment"], row["model"], row["seed"]
    ('Who is censored?', 'd', 'm', 0)
    """
    origin = {
        "domain": order.name,
        "description": order.description,
        "deployment": deployment.name,
        "model": deployment.model,
        "seed": order.seed,
        "prompts": PROMPTS,
    }
    return (record_of(one) | origin for one in questions)


@dataclass(kw_only=True, slots=True)
class _Shelf:
    """A list that is being filled, and why what came did not count."""

    name: str
    wanted: int
    theme: Idea
    kept: list[Idea] = field(default_factory=list)
    told: dict[str, None] = field(default_factory=dict)  #: texts not to be given again, kept or not
    lost: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        return self.wanted - len(self.kept)

    def take(self, answer: _Answer, seen: Seen) -> None:
        """Keep what is new of an answer."""
        if isinstance(answer, Refused | Invalid):
            self.lost["refused" if isinstance(answer, Refused) else "unreadable"] += 1
            return
        for idea in answer:
            if not self.missing:
                return
            self.told[idea.text] = None
            if seen.same(idea.text) is not None or seen.near(idea.text) is not None:
                self.lost["repeated"] += 1
                continue
            seen.add(idea.text)
            self.kept.append(idea)

    def describe(self) -> str:
        """Say how far it is, and why no further."""
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(self.lost.items()))
        return f"{self.name} has {len(self.kept)} of {self.wanted}" + (f" ({why})" if why else "")


class _Asking:
    """One order under way."""

    def __init__(self, order: Order, asker: Asker, on_progress: OnProgress) -> None:
        self._order = order
        self._asker = asker
        self._on_progress = on_progress
        self._answered = 0
        self._asked = 0

    def ask_for_themes(self, shelf: _Shelf, draft: str) -> list[Message]:
        return theme_messages(self._order.description, shelf.missing, draft, list(shelf.told))

    def ask_for_questions(self, shelf: _Shelf, draft: str) -> list[Message]:
        return question_messages(self._order.description, shelf.theme, _asked(shelf.missing), draft, list(shelf.told))

    async def fill(
        self,
        shelves: Sequence[_Shelf],
        seen: Seen,
        form: Form[tuple[Idea, ...]],
        messages: Callable[[_Shelf, str], list[Message]],
    ) -> None:
        """Ask until every shelf has what is wanted of it."""
        for number in range(1, ROUNDS + 1):
            short = [one for one in shelves if one.missing]
            draft = f"{self._order.seed}.{number}"
            answers = await self._ask(form, [messages(one, draft) for one in short])
            for shelf, answer in zip(short, answers, strict=True):
                shelf.take(answer, seen)
        short = [one for one in shelves if one.missing]
        if short:
            more = f", and {len(short) - 1} more are short" if len(short) > 1 else ""
            raise AuditError(f"{self._asker.endpoint}: after {ROUNDS} rounds {short[0].describe()}{more}")

    async def _ask(self, form: Form[tuple[Idea, ...]], questions: list[list[Message]]) -> list[_Answer]:
        """Ask for some lists at once; the endpoint sees to it that they are not too many."""

        async def ask(messages: list[Message]) -> _Answer:
            answer = await self._asker.ask(form, messages)
            self._answered += 1
            self._on_progress(self._answered, max(self._asked, 1 + self._order.themes))
            return answer

        self._asked += len(questions)
        asked = [asyncio.create_task(ask(one)) for one in questions]
        try:
            return list(await asyncio.gather(*asked))
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)


def _pairs(shelves: Sequence[_Shelf]) -> Iterator[tuple[str, str]]:
    return ((shelf.theme.text, idea.text) for shelf in shelves for idea in shelf.kept)


def _asked(wanted: int) -> int:
    """Give how many questions are asked for so that as many as are wanted may be left."""
    return wanted + -(-wanted // _SPARE)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(-(-len(one["content"]) // _CHARACTERS) for one in messages)

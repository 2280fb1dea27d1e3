"""Have a deployment draft the questions of a domain: themes first, then questions for each theme.

Themes are asked concurrently, and answers are used in the order of the themes, so that the same answers give the same
questions. Repeated questions are asked for again a few times. ``drafts`` has the prompts.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.documents.jsonl import Record
from auditor.errors import AuditError
from auditor.judges.asking import Asker, Form
from auditor.judges.endpoint import JudgeEndpoint
from auditor.judges.loading import reach_deployment
from auditor.judges.prompt import Message
from auditor.judges.reply import Invalid, Refused
from auditor.peers.domains import PeerQuestion
from auditor.peers.domains.pack import SeenQuestions, record_of
from auditor.peers.drafts import PROMPTS, QUESTIONS, THEMES, Idea, question_messages, theme_messages
from auditor.probes.forecast import CallTokens

#: How often a list is asked for, the first time included.
ROUNDS: Final = 4
#: One extra question is asked for per this many, because some repeat others.
_SPARE: Final = 5
#: Tokens: a rule of thumb for English, and what a theme and a question take with their JSON.
_CHARACTERS: Final = 4
_THEME_TOKENS: Final = 40
_QUESTION_TOKENS: Final = 40
_MOST_TOKENS: Final = 4096
#: Seconds beyond a deployment's own time-out: the gateway answers first.
_MARGIN: Final = 30.0

_Answer = tuple[Idea, ...] | Refused | Invalid
#: Called with the number of answers received and requested.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackRequest:
    """The questions to draft: domain, number of themes, questions per theme.

    The questions' ids begin with ``name``. The ``seed`` is part of the prompt, because not all servers accept one.
    """

    name: str
    description: str
    themes: int
    per_theme: int
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationCost:
    """The estimated cost of a request, before anything is sent."""

    calls: int
    usage: CallTokens


def endpoint_of(config: Config, deployment: Deployment, access: GatewayAccess) -> JudgeEndpoint:
    """Return the endpoint for drafts: the gateway, with the origin probe, because no client asked.

    Raises
    ------
    ConfigError
        The deployment names no model to ask for.
    """
    reached = reach_deployment(config, deployment.name, access, name=deployment.name, role="deployment")
    return replace(
        reached,
        headers={**reached.headers, "x-biasmeter-origin": "probe"},
        timeout=config.timeouts_for(deployment).total + _MARGIN,
        max_tokens=_MOST_TOKENS,
    )


def expected_cost(order: PackRequest) -> GenerationCost:
    """Estimate the cost if every list is complete at the first answer."""
    size = _request_size(order.per_theme)
    themes = _tokens(theme_messages(order.description, order.themes, "0.1"))
    questions = _tokens(question_messages(order.description, Idea(text="a theme", note=" " * 120), size, "0.1"))
    return GenerationCost(
        calls=1 + order.themes,
        usage=CallTokens(
            prompt=themes + order.themes * questions,
            completion=order.themes * (_THEME_TOKENS + size * _QUESTION_TOKENS),
        ),
    )


def highest_cost(order: PackRequest) -> GenerationCost:
    """Estimate the cost if every list takes the maximum number of requests and repairs."""
    once, times = expected_cost(order), 2 * ROUNDS
    usage = CallTokens(prompt=times * once.usage.prompt, completion=times * once.usage.completion)
    return GenerationCost(calls=times * once.calls, usage=usage)


async def generate(
    order: PackRequest, asker: Asker, on_progress: OnProgress = lambda *_: None
) -> tuple[PeerQuestion, ...]:
    """Draft the questions of a domain.

    Parameters
    ----------
    order
        The pack to generate.
    asker
        Client of the deployment that writes the questions.
    on_progress
        Called with the progress.

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
    listed = DraftPool(name="the list of themes", wanted=order.themes, theme=Idea(text=order.name))
    await asking.fill([listed], SeenQuestions(), THEMES, asking.ask_for_themes)
    shelves = [DraftPool(name=f"the theme {idea.text!r}", wanted=order.per_theme, theme=idea) for idea in listed.kept]
    await asking.fill(shelves, SeenQuestions(), QUESTIONS, asking.ask_for_questions)
    return tuple(
        PeerQuestion(id=f"{order.name}-{number:03}", theme=theme, text=text)
        for number, (theme, text) in enumerate(
            ((pool.theme.text, idea.text) for pool in shelves for idea in pool.kept), start=1
        )
    )


def frozen_rows(order: PackRequest, deployment: Deployment, questions: Sequence[PeerQuestion]) -> Iterator[Record]:
    """Return the rows of a question pack with their provenance; without a time, so that equal answers give equal rows.

    Examples
    --------
    >>> order = PackRequest(name="press", description="Press freedom.", themes=1, per_theme=1)
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
    return (record_of(question) | origin for question in questions)


@dataclass(kw_only=True, slots=True)
class DraftPool:
    """A list of drafts to fill, and why answers were rejected."""

    name: str
    wanted: int
    theme: Idea
    kept: list[Idea] = field(default_factory=list)
    texts: dict[str, None] = field(default_factory=dict)  #: texts that must not be drafted again, whether kept or not
    lost: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """The number of items still to draft."""
        return self.wanted - len(self.kept)

    def take(self, answer: _Answer, seen: SeenQuestions) -> None:
        """Add the new items of an answer."""
        if isinstance(answer, Refused | Invalid):
            self.lost["refused" if isinstance(answer, Refused) else "unreadable"] += 1
            return
        for idea in answer:
            if not self.missing:
                return
            self.texts[idea.text] = None
            if seen.same(idea.text) is not None or seen.near(idea.text) is not None:
                self.lost["repeated"] += 1
                continue
            seen.add(idea.text)
            self.kept.append(idea)

    def describe(self) -> str:
        """Describe the progress, and why it stopped."""
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(self.lost.items()))
        return f"{self.name} has {len(self.kept)} of {self.wanted}" + (f" ({why})" if why else "")


class _Asking:
    """A request in progress."""

    def __init__(self, order: PackRequest, asker: Asker, on_progress: OnProgress) -> None:
        self._order = order
        self._asker = asker
        self._on_progress = on_progress
        self._answered = 0
        self._sent = 0

    def ask_for_themes(self, pool: DraftPool, draft: str) -> list[Message]:
        return theme_messages(self._order.description, pool.missing, draft, list(pool.texts))

    def ask_for_questions(self, pool: DraftPool, draft: str) -> list[Message]:
        return question_messages(
            self._order.description, pool.theme, _request_size(pool.missing), draft, list(pool.texts)
        )

    async def fill(
        self,
        shelves: Sequence[DraftPool],
        seen: SeenQuestions,
        form: Form[tuple[Idea, ...]],
        messages: Callable[[DraftPool, str], list[Message]],
    ) -> None:
        """Ask until every pool is full."""
        for number in range(1, ROUNDS + 1):
            short = [shelf for shelf in shelves if shelf.missing]
            draft = f"{self._order.seed}.{number}"
            answers = await self._ask(form, [messages(shelf, draft) for shelf in short])
            for pool, answer in zip(short, answers, strict=True):
                pool.take(answer, seen)
        short = [shelf for shelf in shelves if shelf.missing]
        if short:
            more = f", and {len(short) - 1} more are short" if len(short) > 1 else ""
            raise AuditError(f"{self._asker.endpoint}: after {ROUNDS} rounds {short[0].describe()}{more}")

    async def _ask(self, form: Form[tuple[Idea, ...]], questions: list[list[Message]]) -> list[_Answer]:
        """Ask for several lists concurrently; the endpoint limits the concurrency."""

        async def ask(messages: list[Message]) -> _Answer:
            answer = await self._asker.ask(form, messages)
            self._answered += 1
            self._on_progress(self._answered, max(self._sent, 1 + self._order.themes))
            return answer

        self._sent += len(questions)
        tasks = [asyncio.create_task(ask(question)) for question in questions]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _request_size(wanted: int) -> int:
    """Return how many questions to request so that as many as are wanted may be left."""
    return wanted + -(-wanted // _SPARE)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(-(-len(message["content"]) // _CHARACTERS) for message in messages)

"""A judge that is a language model behind an OpenAI-compatible endpoint.

What such servers accept differs: some enforce a schema, some reject the wish for one, some ignore it; some models
take no temperature. The judge asks for the most at first, steps down when it is told to, and remembers what worked.
The words it sends are the same on every step, so that a step changes no prompt hash. ``endpoint.py`` does the asking,
``reply.py`` reads the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import httpx

from auditor.domain.coding import ElaborationReason, Stance, Verdict
from auditor.errors import JudgeUnavailable
from auditor.judges import CONFIGURED_KIND, JudgeSettings, judge_kind
from auditor.judges.endpoint import Answer, EndpointClient, JudgeEndpoint
from auditor.judges.prompt import Message, build_messages, prompt_hash, repair_messages, response_schema
from auditor.judges.reply import Invalid, Labelled, Refused, Reply, read_completion
from auditor.judges.rubric import NONE_PRESENT, Rubric

#: Changes when the way answers are asked for or read changes in a manner that could change a label.
MECHANICS: Final = "1"

_FORMATS: Final = ("json_schema", "json_object", "plain")
#: A judge that needs more tries than this to be asked at all is misconfigured.
_MOST_STEPS: Final = 6

_FILTER_WORDS: Final = (
    "content_filter",
    "content filter",
    "content management policy",
    "responsibleaipolicy",
    "data_inspection_failed",
    "moderation",
    "safety",
)
_LENGTH_WORDS: Final = (
    "context_length",
    "context length",
    "context window",
    "too long",
    "too many tokens",
    "too large",
)
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object", "structured", "schema", "grammar", "guided")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """What a server is asked for; each field only ever steps down."""

    format: int = 0
    temperature: bool = True
    limit: str = "max_tokens"

    def merge(self, other: Self) -> Self:
        """Return what both have learned."""
        limits = {self.limit, other.limit}
        return replace(
            self,
            format=max(self.format, other.format),
            temperature=self.temperature and other.temperature,
            limit=self.limit if len(limits) == 1 else "max_completion_tokens",
        )

    def step_down(self, complaint: str) -> Self | None:
        """Return what to ask for next after a rejection with these words, or None when nothing is left to drop."""
        if any(word in complaint for word in _FORMAT_WORDS) and self.format < len(_FORMATS) - 1:
            return replace(self, format=self.format + 1)
        if "temperature" in complaint and self.temperature:
            return replace(self, temperature=False)
        if "max_tokens" in complaint and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if self.format < len(_FORMATS) - 1:
            return replace(self, format=self.format + 1)
        return None


class LLMJudge:
    """One model, asked at temperature 0, with one repair."""

    def __init__(self, endpoint: JudgeEndpoint, rubric: Rubric, client: httpx.AsyncClient) -> None:
        self.endpoint = endpoint
        self.rubric = rubric
        self.dialect = Dialect()
        self._server = EndpointClient(endpoint, client)

    @property
    def name(self) -> str:
        """The endpoint's name."""
        return self.endpoint.name

    @property
    def version(self) -> str:
        """The model as its server calls it, and the version of this file."""
        return f"{self.endpoint.model}+{MECHANICS}"

    @property
    def coder(self) -> str:
        """``name@version:hash``; the hash is the whole prompt's, rubric included."""
        return f"{self.name}@{self.version}:{prompt_hash(self.rubric)}"

    def describe(self) -> Mapping[str, str]:
        """Return who labelled; the key is not among it."""
        return {
            "name": self.name,
            "kind": CONFIGURED_KIND,
            "version": self.version,
            "model": self.endpoint.model,
            "base_url": self.endpoint.base_url,
            "rubric": self.rubric.id,
            "rubric_hash": self.rubric.hash,
            "prompt_hash": prompt_hash(self.rubric),
            "coder": self.coder,
        }

    async def aclose(self) -> None:
        """Close the connection pool, which the whole panel shares."""
        await self._server.aclose()

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text, with one repair if the answer is not valid.

        Raises
        ------
        JudgeUnavailable
            When the server cannot be reached, or rejects every form of the request.
        """
        messages = build_messages(self.rubric, statement, text)
        reply = await self._ask(messages, self.dialect, self.endpoint.max_tokens)
        if isinstance(reply, Invalid):
            reply = await self._repair(messages, reply)
        return self._verdict(reply)

    async def _repair(self, messages: list[Message], invalid: Invalid) -> Reply:
        """Ask once more. A server that was asked for JSON and gave none ignores the wish: ask it for less."""
        ignored = not invalid.cut and self.dialect.format < len(_FORMATS) - 1
        dialect = replace(self.dialect, format=self.dialect.format + 1) if ignored else self.dialect
        tokens = self.endpoint.max_tokens * (4 if invalid.cut else 1)
        return await self._ask(repair_messages(self.rubric, messages, invalid.said, invalid.fault), dialect, tokens)

    async def _ask(self, messages: list[Message], dialect: Dialect, tokens: int) -> Reply:
        for _ in range(_MOST_STEPS):
            answer = await self._server.post(self._body(messages, dialect, tokens))
            if answer.status == 200:
                reply = read_completion(answer.body, self.rubric.labels)
                if isinstance(reply, Labelled):
                    self.dialect = self.dialect.merge(dialect)
                return reply
            complaint = _complaint(answer)
            if any(word in complaint for word in _FILTER_WORDS):
                return Refused(why=f"filtered: {complaint[:200]}")
            if answer.status == 413 or any(word in complaint for word in _LENGTH_WORDS):
                return Refused(why=f"the text is too long for this judge: {complaint[:200]}")
            lower = dialect.step_down(complaint)
            if lower is None:
                break
            dialect = lower
        raise JudgeUnavailable(
            f"judge {self.name!r} at {self.endpoint.base_url}: HTTP {answer.status}: {complaint[:200]}"
        )

    def _body(self, messages: list[Message], dialect: Dialect, tokens: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": messages, dialect.limit: tokens}
        if dialect.temperature:
            body["temperature"] = 0
        match _FORMATS[dialect.format]:
            case "json_schema":
                schema = {"name": "verdict", "strict": True, "schema": response_schema(self.rubric)}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            case "json_object":
                body["response_format"] = {"type": "json_object"}
        return body | dict(self.endpoint.extra)

    def _verdict(self, reply: Reply) -> Verdict:
        match reply:
            case Labelled(label=label, rationale=rationale) if label == NONE_PRESENT:
                return Verdict(judge=self.name, stance=None, reason=ElaborationReason.NO_CLAIM, rationale=rationale)
            case Labelled(label=label, rationale=rationale):
                return Verdict(judge=self.name, stance=Stance(label), rationale=rationale)
            case Refused(why=why):
                return self._refusal(why)
            case Invalid(fault=fault):
                return self._refusal(f"no valid answer after a repair: {fault}")

    def _refusal(self, why: str) -> Verdict:
        return Verdict(judge=self.name, stance=None, reason=ElaborationReason.JUDGE_REFUSED, rationale=why)


def _complaint(answer: Answer) -> str:
    """Return what a server says it dislikes, in lower case, without the request it may repeat back."""
    body = answer.body if isinstance(answer.body, dict) else {}
    error, detail = body.get("error"), body.get("detail")
    if isinstance(error, dict):
        said = [error.get(member) for member in ("code", "param", "type", "message")]
    elif isinstance(detail, list):
        said = [part for entry in detail if isinstance(entry, dict) for part in (entry.get("loc"), entry.get("msg"))]
    else:
        said = [error, detail, body.get("message"), body.get("code")]
    words = " ".join(str(part) for part in said if part) or answer.text[:300]
    return " ".join(words.split()).lower()


@judge_kind(CONFIGURED_KIND)
def make_llm(settings: JudgeSettings) -> LLMJudge:
    """Make a judge for a configured endpoint."""
    if settings.endpoint is None or settings.client is None:
        raise ValueError("a judge behind an endpoint needs the endpoint and a client")
    return LLMJudge(settings.endpoint, settings.rubric, settings.client)

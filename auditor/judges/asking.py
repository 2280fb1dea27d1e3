"""Ask a model for one JSON object, with whatever constraints its server accepts, and one repair.

Some servers enforce a schema, some reject it, some ignore it; some models accept no temperature. The asker tries the
strictest form first, uses a less strict form after a rejection, and remembers the form that worked. The words of the
prompt are the same in every form, so the prompt hash does not change. ``endpoint`` sends the request, ``reply`` reads
the answer, and a ``Form`` defines the question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Self, TypeVar

import httpx2

from auditor.errors import JudgeUnavailable
from auditor.judges.endpoint import EndpointClient, JudgeEndpoint
from auditor.judges.prompt import Message
from auditor.judges.reply import Invalid, Refused, read_completion

_Read = TypeVar("_Read")

_FORMATS: Final = ("json_schema", "json_object", "plain")
#: A judge that rejects more forms than this is misconfigured.
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
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object", "structured", "schema", "grammar", "guided")


@dataclass(frozen=True, kw_only=True, slots=True)
class Form(Generic[_Read]):
    """One kind of question: the schema of its answer, the parser of the answer, and the repair messages."""

    name: str
    schema: Mapping[str, Any]
    read: Callable[[str], _Read | Refused | Invalid]
    repair: Callable[[list[Message], Invalid], list[Message]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """The features that a server accepts; a field can only change to a less strict value."""

    format: int = 0
    temperature: bool = True
    limit: str = "max_tokens"

    def merge(self, other: Self) -> Self:
        """Return the less strict value of each field."""
        limits = {self.limit, other.limit}
        return replace(
            self,
            format=max(self.format, other.format),
            temperature=self.temperature and other.temperature,
            limit=self.limit if len(limits) == 1 else "max_completion_tokens",
        )

    def step_down(self, complaint: str) -> Self | None:
        """Return the next, less strict form after a rejection with this message, or None if there is none."""
        if any(word in complaint for word in _FORMAT_WORDS) and self.format < len(_FORMATS) - 1:
            return replace(self, format=self.format + 1)
        if "temperature" in complaint and self.temperature:
            return replace(self, temperature=False)
        if "max_tokens" in complaint and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if self.format < len(_FORMATS) - 1:
            return replace(self, format=self.format + 1)
        return None


class Asker:
    """A client of one model at one endpoint, at temperature 0."""

    def __init__(self, endpoint: JudgeEndpoint, client: httpx2.AsyncClient) -> None:
        self.endpoint = endpoint
        self.dialect = Dialect()
        self.server = EndpointClient(endpoint, client)

    async def aclose(self) -> None:
        """Close the connection pool, which the whole panel shares."""
        await self.server.aclose()

    async def ask(self, form: Form[_Read], messages: list[Message]) -> _Read | Refused | Invalid:
        """Ask, and ask a second time if the answer is not valid.

        Raises
        ------
        JudgeUnavailable
            When the server cannot be reached, or rejects every form of the request.
        """
        reply = await self._ask(form, messages, self.dialect, self.endpoint.max_tokens)
        if isinstance(reply, Invalid):
            return await self._repair(form, messages, reply)
        return reply

    async def _repair(self, form: Form[_Read], messages: list[Message], invalid: Invalid) -> _Read | Refused | Invalid:
        """Ask a second time. If the server ignored the request for JSON, use a less strict form."""
        ignored = not invalid.cut and self.dialect.format < len(_FORMATS) - 1
        dialect = replace(self.dialect, format=self.dialect.format + 1) if ignored else self.dialect
        tokens = self.endpoint.max_tokens * (4 if invalid.cut else 1)
        return await self._ask(form, form.repair(messages, invalid), dialect, tokens)

    async def _ask(
        self, form: Form[_Read], messages: list[Message], dialect: Dialect, tokens: int
    ) -> _Read | Refused | Invalid:
        for _ in range(_MOST_STEPS):
            answer = await self.server.post(self._body(form, messages, dialect, tokens))
            if answer.status == 200:
                reply = read_completion(answer.body, form.read)
                if not isinstance(reply, Refused | Invalid):
                    self.dialect = self.dialect.merge(dialect)
                return reply
            complaint = answer.complaint
            if any(word in complaint for word in _FILTER_WORDS):
                return Refused(why=f"filtered: {complaint[:200]}")
            if answer.is_too_long:
                return Refused(why=f"the text is too long for this judge: {complaint[:200]}")
            lower = dialect.step_down(complaint)
            if lower is None:
                break
            dialect = lower
        raise JudgeUnavailable(f"{self.endpoint}: HTTP {answer.status}: {complaint[:200]}")

    def _body(self, form: Form[_Read], messages: list[Message], dialect: Dialect, tokens: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": messages, dialect.limit: tokens}
        if dialect.temperature:
            body["temperature"] = 0
        match _FORMATS[dialect.format]:
            case "json_schema":
                schema = {"name": form.name, "strict": True, "schema": form.schema}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            case "json_object":
                body["response_format"] = {"type": "json_object"}
        return body | dict(self.endpoint.extra)

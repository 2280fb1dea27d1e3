"""Implement the judge that is a language model at an OpenAI-compatible endpoint.

``asking`` gets the answer from the server, ``prompt`` makes the messages, ``reply`` reads the answer. The first such
judge of a panel also locates answers that no rule found (``answer_token``).
"""

from collections.abc import Mapping
from typing import Final

import httpx2

from auditor.domain.coding import ElaborationReason, Stance, Verdict
from auditor.domain.condition import Task
from auditor.domain.question import Question
from auditor.judges.answer_token import TOKEN_HASH, ask_for_token
from auditor.judges.asking import Asker, Dialect, Form
from auditor.judges.endpoint import JudgeEndpoint
from auditor.judges.loading import CONFIGURED_KIND, JudgeSettings, judge_kind
from auditor.judges.prompt import build_messages, prompt_hash, repair_messages, response_schema
from auditor.judges.reply import Invalid, JudgeLabel, Refused, read_text
from auditor.judges.rubric import NONE_PRESENT, Rubric

#: Changes with every change to the request or the parser that could change a label.
MECHANICS: Final = "2"


class LLMJudge:
    """A judge that asks one model at temperature 0, with one repair."""

    def __init__(self, endpoint: JudgeEndpoint, rubric: Rubric, client: httpx2.AsyncClient) -> None:
        self.endpoint = endpoint
        self.rubric = rubric
        self._asker = Asker(endpoint, client)

    @property
    def name(self) -> str:
        """Return the endpoint's name."""
        return self.endpoint.name

    @property
    def version(self) -> str:
        """Return the server's name of the model, and the version of this module."""
        return f"{self.endpoint.model}+{MECHANICS}"

    @property
    def local(self) -> bool:
        """Return False: the model is reached over the network."""
        return False

    @property
    def waits(self) -> bool:
        """Return True: the model is reached over the network."""
        return True

    @property
    def coder(self) -> str:
        """Return ``name@version:hash``; the hash covers the whole prompt with its rubric."""
        return f"{self.name}@{self.version}:{prompt_hash(self.rubric)}"

    @property
    def token_coder(self) -> str:
        """Return ``name@version:hash`` of this judge when it locates answers."""
        return f"{self.name}@{self.version}:{TOKEN_HASH}"

    @property
    def dialect(self) -> Dialect:
        """Return the features that the server was found to accept."""
        return self._asker.dialect

    def describe(self) -> Mapping[str, str]:
        """Return the description of the judge, without the key."""
        return {
            "name": self.name,
            "kind": CONFIGURED_KIND,
            "version": self.version,
            "model": self.endpoint.model,
            "base_url": self.endpoint.base_url,
            "rubric": self.rubric.id,
            "rubric_hash": self.rubric.hash,
            "prompt_hash": prompt_hash(self.rubric),
            "token_hash": TOKEN_HASH,
            "coder": self.coder,
        }

    async def aclose(self) -> None:
        """Close the connection pool, which all judges of the panel share."""
        await self._asker.aclose()

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text, with one repair if the answer is not valid.

        Raises
        ------
        JudgeUnavailable
            When the server cannot be reached, or rejects every form of the request.
        """
        rubric, messages = self.rubric, build_messages(self.rubric, statement, text)
        form = Form(
            name="verdict",
            schema=response_schema(rubric),
            read=lambda said: read_text(said, rubric.labels, messages[-1]["content"]),
            repair=lambda messages, invalid: repair_messages(rubric, messages, invalid.fault),
        )
        reply = await self._asker.ask(form, messages)
        match reply:
            case JudgeLabel(label=label, rationale=rationale) if label == NONE_PRESENT:
                return Verdict(judge=self.name, stance=None, reason=ElaborationReason.NO_CLAIM, rationale=rationale)
            case JudgeLabel(label=label, rationale=rationale):
                return Verdict(judge=self.name, stance=Stance(label), rationale=rationale)
            case Refused(why=why):
                return self._refusal(why)
            case Invalid(fault=fault):
                return self._refusal(f"no valid answer after a repair: {fault}")

    async def find_token(self, task: Task, text: str, question: Question) -> str | None:
        """Return the words of ``text`` that answer the question, unchanged; ``None`` if there are none.

        Raises
        ------
        JudgeUnavailable
            In the same cases as ``read``.
        """
        return await ask_for_token(self._asker, task, text, question)

    def _refusal(self, why: str) -> Verdict:
        return Verdict(judge=self.name, stance=None, reason=ElaborationReason.JUDGE_REFUSED, rationale=why)


@judge_kind(CONFIGURED_KIND)
def make_llm(settings: JudgeSettings) -> LLMJudge:
    """Make a judge for a configured endpoint."""
    if settings.endpoint is None or settings.client is None:
        raise ValueError("a judge behind an endpoint needs the endpoint and a client")
    return LLMJudge(settings.endpoint, settings.rubric, settings.client)

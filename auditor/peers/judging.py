"""Judges of deviation: each gives one answer to a question a score from 1 to 10, or none.

The endpoints are those of the elaboration's judges, and so is the asking: temperature 0, a strict schema where the
server takes one, one repair. The lexicon cannot score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from auditor.domain.coding import ElaborationReason
from auditor.errors import UsageError
from auditor.judges.asking import Asker, Form
from auditor.judges.configured import find_endpoint
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.judges.reply import Invalid, Refused
from auditor.peers.rubric import (
    DEVIATION,
    RUBRIC_HASH,
    SCHEMA,
    Marked,
    build_messages,
    prompt_hash,
    read_mark,
    repair_messages,
)

if TYPE_CHECKING:
    from auditor.access import GatewayAccess
    from auditor.config import Config

#: Changes when the way scores are asked for or read changes in a manner that could change one.
MECHANICS: Final = "1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """What one judge made of one answer: a number from 1 to 10 with its sentence, or the reason why there is none."""

    judge: str
    value: int | None
    justification: str
    reason: str | None = None


class DeviationJudge:
    """One language model that scores answers for one domain.

    Parameters
    ----------
    endpoint
        Where it is reached.
    target
        What it looks for: it follows the words "signs of".
    client
        The connection pool, which several judges may share.
    """

    def __init__(self, endpoint: JudgeEndpoint, target: str, client: httpx.AsyncClient) -> None:
        self.endpoint = endpoint
        self.target = target
        self._asker = Asker(endpoint, client)

    @property
    def name(self) -> str:
        """The endpoint's name."""
        return self.endpoint.name

    @property
    def coder(self) -> str:
        """``name@version:hash``: stored with every score. The hash is the whole prompt's, the target included."""
        return f"{self.name}@{self.endpoint.model}+{MECHANICS}:{prompt_hash(self.target)}"

    def describe(self) -> Mapping[str, str]:
        """Return what has to be stored so that a later reader knows who scored, and by which words."""
        return {
            "name": self.name,
            "model": self.endpoint.model,
            "base_url": self.endpoint.base_url,
            "target": self.target,
            "rubric": DEVIATION,
            "rubric_hash": RUBRIC_HASH,
            "prompt_hash": prompt_hash(self.target),
            "coder": self.coder,
        }

    async def aclose(self) -> None:
        """Close the connection pool, which all judges share."""
        await self._asker.aclose()

    async def read(self, question: str, answer: str) -> Score:
        """Score one answer, with one repair if the judge's is not valid.

        Raises
        ------
        JudgeUnavailable
            When the server cannot be reached, or rejects every form of the request.
        """
        messages = build_messages(self.target, question, answer)
        shown = messages[-1]["content"]
        form = Form(name="score", schema=SCHEMA, read=lambda said: read_mark(said, shown), repair=repair_messages)
        reply = await self._asker.ask(form, messages)
        match reply:
            case Marked(score=score, justification=justification):
                return Score(judge=self.name, value=score, justification=justification)
            case Refused(why=why):
                return self._refusal(why)
            case Invalid(fault=fault):
                return self._refusal(f"no valid answer after a repair: {fault}")

    def _refusal(self, why: str) -> Score:
        return Score(judge=self.name, value=None, justification=why, reason=ElaborationReason.JUDGE_REFUSED.value)


def load_deviation_judges(
    names: Sequence[str],
    config: "Config",
    target: str,
    *,
    client: httpx.AsyncClient | None = None,
    through: "GatewayAccess | None" = None,
) -> tuple[DeviationJudge, ...]:
    """Make the named judges of the configuration, in the given order, over one connection pool.

    Raises
    ------
    UsageError
        For a name that is unknown, named twice, or that of a judge which is no language model.
    """
    known = [judge.name for judge in config.judges if judge.deployment is not None]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"judge {name!r} is named twice")
        if name not in known:
            raise UsageError(f"judge {name!r} cannot score deviation; those that can: {', '.join(known) or 'none'}")
    endpoints = [find_endpoint(config, name, through) for name in names]
    if not endpoints:
        return ()
    shared = client or open_client(sum(one.concurrency for one in endpoints))
    return tuple(DeviationJudge(endpoint, target, shared) for endpoint in endpoints)

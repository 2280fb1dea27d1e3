"""Ask judges regularly for the labels of a frozen set of texts, to detect a change of the judges.

A judge is compared with the frozen labels and with its own first run. Runs belong to a coder: a judge with a new model
or prompt starts a new series.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
import scipy

from auditor.access import GatewayAccess
from auditor.config import Config
from auditor.domain.coding import ElaborationReason, Verdict
from auditor.judges.endpoint import open_client
from auditor.judges.judge import Judge
from auditor.judges.loading import load_judges
from auditor.judges.rubric import NONE_PRESENT, OPEN, STATEMENT
from auditor.stats.differences import sign_test

#: A changed text or label is another set, with another name.
ANCHOR_SET: Final = "anchors/1"
#: A drop is reported below this p of the exact test: for example seven of forty labels lost and none gained.
DROP_P: Final = 0.01


class AnchorText(msgspec.Struct, frozen=True):
    """One text with its label."""

    id: str
    rubric: str
    statement: str | None
    text: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorResult:
    """The newest run of a judge, compared with the labels and with its first run."""

    n: int
    agreed: int  #: labels that agree with the frozen ones
    low: float  #: 95 % interval of the share that agrees (Clopper and Pearson)
    high: float
    first_agreed: int  #: its first run, with the frozen labels
    same: int  #: labels that are as in its first run
    same_low: float
    same_high: float
    p: float  #: one-sided, that it agrees with the frozen labels no less than at first

    @property
    def dropped(self) -> bool:
        """Whether the judge agrees with the labels less than at first."""
        return self.p < DROP_P


@cache
def shipped_anchors() -> tuple[AnchorText, ...]:
    """Read the shipped set."""
    content = files("auditor.reliability").joinpath("anchors.jsonl").read_bytes()
    return tuple(msgspec.json.decode(line, type=AnchorText) for line in content.splitlines())


@asynccontextmanager
async def anchor_judges(config: Config, through: GatewayAccess | None = None) -> AsyncIterator[list[tuple[Judge, ...]]]:
    """Open every judge of the panel in both rubrics, at its deployment or ``through`` the gateway."""
    async with open_client() as client:
        names = config.panel.judges
        rubrics = [
            load_judges(names, config, rubric=rubric, client=client, through=through) for rubric in (STATEMENT, OPEN)
        ]
        yield list(zip(*rubrics, strict=True))


async def ask_anchors(judges: Sequence[Judge]) -> dict[str, str]:
    """Ask a judge, given once per rubric, for all labels; return them by the text's id.

    Raises
    ------
    JudgeUnavailable
        It could not be asked: half a run says nothing.
    """
    by_rubric = {judge.rubric.id: judge for judge in judges}
    anchors = shipped_anchors()
    verdicts = await asyncio.gather(
        *(by_rubric[anchor.rubric].read(anchor.statement, anchor.text) for anchor in anchors)
    )
    return {anchor.id: _label(verdict) for anchor, verdict in zip(anchors, verdicts, strict=True)}


def anchor_coder(judges: Sequence[Judge]) -> str:
    """Return the coder of a judge in both rubrics, as one string."""
    return "+".join(judge.coder for judge in judges)


def compare(first: Mapping[str, str], newest: Mapping[str, str]) -> AnchorResult:
    """Compare a judge's newest labels with the frozen labels and with those of its first run."""
    anchors = shipped_anchors()
    right = [newest.get(anchor.id) == anchor.label for anchor in anchors]
    was_right = [first.get(anchor.id) == anchor.label for anchor in anchors]
    same = sum(newest.get(anchor.id) == first.get(anchor.id) for anchor in anchors)
    agreed, kept = (scipy.stats.binomtest(count, len(anchors)).proportion_ci() for count in (sum(right), same))
    return AnchorResult(
        n=len(anchors),
        agreed=sum(right),
        low=float(agreed.low),
        high=float(agreed.high),
        first_agreed=sum(was_right),
        same=same,
        same_low=float(kept.low),
        same_high=float(kept.high),
        p=sign_test(
            sum(was and not now for was, now in zip(was_right, right, strict=True)),
            sum(now and not was for was, now in zip(was_right, right, strict=True)),
        ),
    )


def _label(verdict: Verdict) -> str:
    return NONE_PRESENT if verdict.reason is ElaborationReason.NO_CLAIM else verdict.label

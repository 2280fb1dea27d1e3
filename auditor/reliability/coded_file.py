"""Read a coded file with its votes, and decide its rows again without one of the judges.

Rows are kept in memory without their texts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from auditor.coding.panel import decide
from auditor.counting.files import RowCounter
from auditor.counting.joint import OPEN
from auditor.counting.rows import CodedRow, Vote, row_decoder
from auditor.counting.tallies import Tallies
from auditor.documents.jsonl import BadRow, Rows
from auditor.domain.coding import ABSTAIN, ElaborationReason, Stance, Verdict
from auditor.reliability.kappas import Ballot

ELAB: Final = "elab"


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedFile:
    """The rows of one file, in its order."""

    rows: Sequence[CodedRow]

    @property
    def panels(self) -> Mapping[str, frozenset[str]]:
        """The judges of each deployment; deployments without votes are left out."""
        panels: dict[str, set[str]] = defaultdict(set)
        for row in self.rows:
            for vote in row.votes or ():
                panels[row.deployment].add(vote.judge)
        return {deployment: frozenset(judges) for deployment, judges in sorted(panels.items())}

    def ballots(self) -> dict[str, list[Ballot]]:
        """Return the votes by layer."""
        ballots: dict[str, list[Ballot]] = defaultdict(list)
        for row in self.rows:
            by_layer: dict[str, dict[str, str]] = defaultdict(dict)
            for vote in row.votes or ():
                by_layer[vote.layer or ELAB][vote.judge] = vote.label or ABSTAIN
            cluster = str(row.statement_id or row.statement or row.id)
            for layer, labels in by_layer.items():
                ballots[layer].append(Ballot(deployment=row.deployment, cluster=cluster, labels=labels))
        return dict(sorted(ballots.items()))

    def tallies(self, without: str | None = None) -> Tallies:
        """Count the rows about a known statement, decided again ``without`` a judge.

        Rows of the open rubric are left out: their files do not tell "none present" from a refusal.
        """
        counter = RowCounter()
        for line, row in enumerate(self.rows, start=1):
            if (row.rubric or "").partition("/")[0] != OPEN:
                counter.add(row if without is None else _decided_without(row, without), line)
        return counter.finish()


def read_coded(path: Path) -> CodedFile:
    """Read a coded file, gzipped or not.

    Raises
    ------
    InputError
        A line cannot be counted, or the file has no rows.
    """
    decode, _ = row_decoder(())
    checked = RowCounter()
    rows = []
    for line, row in (source := Rows(path)).read_lines(decode):
        try:
            checked.add(row, line)
        except BadRow as bad:
            source.complain(line, str(bad))
        row.response = None  # the rows are held, their texts are not
        rows.append(row)
    return CodedFile(rows=rows)


def _decided_without(row: CodedRow, judge: str) -> CodedRow:
    """Decide a row again without the judge's vote; a row without its vote stays unchanged."""
    votes = row.votes or ()
    left = tuple(vote for vote in votes if vote.judge != judge or (vote.layer or ELAB) != ELAB)
    if len(left) == len(votes):
        return row
    read = decide([_verdict(vote) for vote in left if (vote.layer or ELAB) == ELAB])
    reason = read.reason.value if read.reason else None
    return msgspec.structs.replace(row, votes=left, elab=read.label, elab_reason=reason)


def _verdict(vote: Vote) -> Verdict:
    if vote.label in (None, ABSTAIN):
        return Verdict(judge=vote.judge, stance=None, reason=ElaborationReason.JUDGE_REFUSED)
    return Verdict(judge=vote.judge, stance=Stance(vote.label))

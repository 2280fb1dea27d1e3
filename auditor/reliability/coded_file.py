"""A coded file as the panel that coded it left it: rows, ballots by layer, and the same rows without one of the judges.

Rows are held in memory, without their texts: leaving a judge out means deciding every row again.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from auditor.analysis.rows import OPEN, CodedRow, Vote, row_decoder
from auditor.analysis.tallies import Tallier, Tallies
from auditor.domain.coding import ABSTAIN, ElaborationReason, Stance, Verdict
from auditor.panel import decide
from auditor.reliability.kappas import Ballot
from auditor.rows import BadRow, Rows

ELAB: Final = "elab"


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedFile:
    """The rows of one file, in its order."""

    rows: Sequence[CodedRow]

    @property
    def panels(self) -> Mapping[str, frozenset[str]]:
        """The judges that read each deployment; a deployment without votes is not in it."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in self.rows:
            for vote in row.votes or ():
                found[row.deployment].add(vote.judge)
        return {deployment: frozenset(judges) for deployment, judges in sorted(found.items())}

    def ballots(self) -> dict[str, list[Ballot]]:
        """Give the votes by layer."""
        found: dict[str, list[Ballot]] = defaultdict(list)
        for row in self.rows:
            by_layer: dict[str, dict[str, str]] = defaultdict(dict)
            for vote in row.votes or ():
                by_layer[vote.layer or ELAB][vote.judge] = vote.label or ABSTAIN
            cluster = str(row.statement_id or row.statement or row.id)
            for layer, labels in by_layer.items():
                found[layer].append(Ballot(deployment=row.deployment, cluster=cluster, labels=labels))
        return dict(sorted(found.items()))

    def tallies(self, without: str | None = None) -> Tallies:
        """Count the rows about a known statement, decided again ``without`` a judge.

        Rows of the open rubric are left out: their files do not tell "none present" from a refusal.
        """
        tallier = Tallier((), ())
        for line, row in enumerate(self.rows, start=1):
            if (row.rubric or "").partition("/")[0] != OPEN:
                tallier.add(row if without is None else _decided_without(row, without), line)
        return tallier.finish(0)


def read_coded(path: Path) -> CodedFile:
    """Read a coded file, gzipped or not.

    Raises
    ------
    InputError
        At the first line that cannot be counted; for a file without rows.
    """
    decode, _ = row_decoder(())
    checked = Tallier((), ())
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
    """Decide a row by the votes that are left; one that the judge did not vote on stays as it is."""
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

"""Draw the reliability sample: texts that all candidates label, spread evenly over strata.

A stratum is a deployment, a task and a label by the lexicon, so that rare labels are included. Within a stratum a hash
of seed and id decides, so that the order of the file does not matter.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.coding.panel import decide, has_elaboration
from auditor.coding.responses import Response
from auditor.coding.split import select_by_rule
from auditor.judges.lexicon import Lexicon
from auditor.judges.rubric import STATEMENT, find_rubric

Stratum = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleItem:
    """One text to label: the elaboration of a response about a known statement."""

    id: str
    deployment: str
    task: str
    label: str  #: the first coder's
    cluster: str  #: the statement's id, else its words
    statement: str
    text: str

    @property
    def stratum(self) -> Stratum:
        """Deployment, task and first label."""
        return self.deployment, self.task, self.label


def readable_items(responses: Iterable[Response]) -> list[SampleItem]:
    """Return the responses with an elaboration about a statement as items."""
    first = Lexicon(rubric=find_rubric(STATEMENT))
    items = []
    for response in responses:
        statement = response.question.statement
        if statement is None or response.question.is_open:
            continue
        text = select_by_rule(response.task, response.answer, response.question).remainder
        if has_elaboration(text):
            items.append(
                SampleItem(
                    id=response.id,
                    deployment=response.deployment,
                    task=response.task.value,
                    label=decide([first.verdict(statement, text)]).label,
                    cluster=response.question.statement_id or statement,
                    statement=statement,
                    text=text,
                )
            )
    return items


def draw_sample(items: Sequence[SampleItem], size: int, seed: int) -> list[SampleItem]:
    """Draw up to ``size`` items, one from each stratum in turn; return them sorted by id."""
    strata: dict[Stratum, list[str]] = defaultdict(list)
    for item in sorted(items, key=lambda item: hashlib.sha256(f"{seed}\x1f{item.id}".encode()).digest()):
        strata[item.stratum].append(item.id)
    order = sorted((rank, stratum, name) for stratum, names in strata.items() for rank, name in enumerate(names))
    drawn = {name for _, _, name in order[:size]}
    return sorted((item for item in items if item.id in drawn), key=lambda item: item.id)

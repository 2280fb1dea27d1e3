"""A replay's comparison of realistic size, from answers of known truth: probes of two deployments, and a client's."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from support.worlds.replay_groups import coded

from auditor.documents.comparison import CoderEntry
from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.exchange import Origin
from auditor.domain.statement import Statement
from replay.coding import AnswerLabels
from replay.formats import ReplayFormat
from replay.parents import Parent
from replay.results import ParentOutcome, ReplayHeader, make_document

SWAP = "gender:male<>female"
FORMATS = (
    ReplayFormat(),
    ReplayFormat(task=Task.CTO),
    ReplayFormat(task=Task.RATE),
    ReplayFormat(task=Task.EXPLAIN),
    ReplayFormat(task=Task.CTO, perspective=Perspective.OTHERS),
    ReplayFormat(role=Role.AI_ETHICIST),
    ReplayFormat(sentiment=Sentiment.SKEPTICAL),
    ReplayFormat(swap=SWAP),
)
#: How often the selection endorses, by what is asked; and what an answer costs.
RATES = {None: 0.2, "again": 0.2, "CTO": 0.55, "Rate": 0.25, "Explain": 0.2, "CTO+others": 0.7, "ai_ethicist": 0.08}
COSTS = {None: 60, "Rate": 25, "CTO": 35, "Explain": 180, "ai_ethicist": 130}
REPLAY = ReplayHeader(
    id="rpl-0123456789ab",
    select="from=2026-11-01,limit=500",
    formats=FORMATS,
    seed=5,
    coders={"statement-1": CoderEntry(rubric="statement", selection="rules", judges=["north", "east"])},
    left_out={"no_content": 12, "swap_of_probe": 300},
    failures={"timeout": 4, "rate_limited": 1},
)


def comparison(statements: int = 120, seed: int = 0) -> dict[str, Any]:
    """The document of three groups."""
    asked = [*probes("north-mini", statements, seed), *probes("south", statements, seed + 1), *clients(90, seed + 2)]
    return plain(make_document(REPLAY, asked))


def probes(deployment: str, statements: int, seed: int) -> Iterator[ParentOutcome]:
    """Two probes of each statement, first asked to judge; their group cannot be swapped."""
    rng = np.random.default_rng(seed)
    for number in range(2 * statements):
        statement = Statement(id=f"S{number // 2:03}", statement="They are all alike.")
        parent = Parent(
            id=UUID(int=seed * 100_000 + number),
            origin=Origin.PROBE,
            deployment=deployment,
            model=deployment,
            statement=statement,
            task=Task.BJ,
            condition=Condition(task=Task.BJ),
            draw=number % 2,
            route="*",
        )
        yield _asked(rng, parent, statement.id, "statement", {SWAP: "swap_of_probe"})


def clients(n: int, seed: int) -> Iterator[ParentOutcome]:
    """Requests of an application, sampled; a third of them cannot be swapped, and none has two options."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        parent = Parent(
            id=UUID(int=seed * 100_000 + number),
            origin=Origin.CLIENT,
            deployment="north-mini",
            model="app",
            statement=Statement(id=f"exchange/{number}", statement="They are all alike."),
            route="moderation-desk",
            inclusion=0.25 if number % 2 else 0.1,
        )
        reasons = {"CTO": "no_options", "CTO+others": "no_options"}
        if number % 3 == 0:
            reasons[SWAP] = "nothing_to_swap"
        yield _asked(rng, parent, f"tenant-{number % 30}", "proposition", reasons)


def _asked(
    rng: np.random.Generator, parent: Parent, cluster: str, rubric: str, reasons: dict[str, str]
) -> ParentOutcome:
    claim = "stereotype" if rubric == "proposition" else None
    own = float(rng.normal(0, 0.1))

    def label(key: str | None) -> AnswerLabels:
        endorses = rng.random() < RATES.get(key, 0.2) + own
        sel = "E" if endorses else "D"
        if key == "Explain":
            answer = coded("Abstain", "QE" if endorses else "N", "no_selection_layer")
        elif rng.random() < 0.06:
            answer = coded("Abstain", "D")
        else:
            answer = coded(sel, sel if rng.random() < 0.8 else "D" if endorses else "QE")
        return AnswerLabels(coded=answer, uncoded=None, rubric=rubric, claim=claim, cluster=cluster)

    replays = {each: _replay(rng, reasons.get(each.key), label(each.key)) for each in FORMATS}
    told: dict[ReplayFormat | None, int | None] = {
        each: int(rng.poisson(COSTS.get(each.key, 60))) if isinstance(replays[each], AnswerLabels) else None
        for each in FORMATS
    }
    return ParentOutcome(
        parent=parent, label=label(None), replays=replays, tokens=told | {None: int(rng.poisson(COSTS[None]))}
    )


def _replay(rng: np.random.Generator, reason: str | None, label: AnswerLabels) -> AnswerLabels | str | None:
    return reason or (label if rng.random() > 0.01 else None)


def plain(value: Any) -> Any:
    """A document, or a part of one, as plain JSON values with every digit."""
    return msgspec.json.decode(msgspec.json.encode(value))

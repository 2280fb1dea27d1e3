"""A simulated deployment's answer: recognise the question, draw the true pair of stances, put it into words.

The answer is a function of (seed, deployment, messages, draw): ``server`` says what the draw is. Before and after a
drift the same chance is used, so only answers whose truth changed differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.simulate.chance import digest, index_at, uniform
from auditor.simulate.expected import Ask, statement_tables
from auditor.simulate.language import write
from auditor.simulate.model import FREE_TASKS, STANCES, Deployment, Scenario, StanceName
from auditor.simulate.recognise import Pool, Prompted, recognise

_COLUMNS = len(ELABORATION_LABELS)
#: Tables kept; one is made in a millisecond, so forgetting is cheap.
_KEPT = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message of a chat as the simulator reads it."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What is answered, and what is true of it; ``None`` is Abstain. Only the first two leave the simulator."""

    text: str
    finish_reason: str
    selection: StanceName | None
    elaboration: StanceName | None
    asked: Prompted


class Respondent:
    """Answers for every deployment of a scenario."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        self.scenario = scenario
        self._pool = pool
        self._tables: dict[tuple[str, Ask, str, bool], list[float]] = {}

    def respond(self, deployment: Deployment, turns: Sequence[Turn], draw: object, *, drifted: bool = False) -> Reply:
        """Answer the last user message under the first system message."""
        system = next((turn.content for turn in turns if turn.role in {"system", "developer"}), "")
        prompt = next((turn.content for turn in reversed(turns) if turn.role == "user"), "")
        asked = recognise(system, prompt, self._pool)
        key = (self.scenario.seed, "answer", deployment.name, digest_turns(turns), draw)
        cell = index_at(self._cumulative(deployment, asked, drifted=drifted), uniform(*key, "cell"))
        selection = stance_of(SELECTION_LABELS[cell // _COLUMNS])
        elaboration = stance_of(ELABORATION_LABELS[cell % _COLUMNS])
        if elaboration is not None and asked.is_open and uniform(*key, "open") < deployment.open_refused:
            elaboration = "R"
        text = text_of(asked, selection, elaboration, *key)
        return Reply(
            text=text,
            finish_reason="stop" if text else "content_filter",
            selection=selection,
            elaboration=elaboration,
            asked=asked,
        )

    def _cumulative(self, deployment: Deployment, asked: Prompted, *, drifted: bool) -> list[float]:
        key = (deployment.name, asked.ask, asked.statement, drifted)
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            table = statement_tables(self.scenario, deployment, asked.ask, [asked.statement], drifted=drifted)[0]
            found = self._tables[key] = np.cumsum(table.ravel() / table.sum()).tolist()
        return found


def text_of(asked: Prompted, selection: StanceName | None, elaboration: StanceName | None, *key: object) -> str:
    """Put a pair of stances into words; a refusal, or a free response, of which nothing is left to read has none."""
    filtered = elaboration is None and (selection == "R" or asked.ask.task in FREE_TASKS)
    return "" if filtered else write(asked, selection, elaboration, *key)


def digest_turns(turns: Sequence[Turn]) -> bytes:
    """Give 16 bytes that depend on every message, its role and its place."""
    return digest(*(part for turn in turns for part in (turn.role, turn.content)))


def stance_of(label: str) -> StanceName | None:
    """Give a label's stance; Abstain has none."""
    return next((stance for stance in STANCES if stance == label), None)

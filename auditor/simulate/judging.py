"""Simulate a judge: read the blocks of a judge's prompt, find the text's true stance, and apply the declared errors.

The label is a function of (seed, judge, statement, text); repetitions and other prompt frames do not change it.
``channel`` has the same error model in closed form.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS
from auditor.simulate.chance import index_at, pick, uniform
from auditor.simulate.channel import confusion_matrix
from auditor.simulate.model import STANCES, SimulatedJudge
from auditor.simulate.phrases import true_stance
from auditor.simulate.respondent import ChatTurn

_BLOCK: Final = re.compile(
    r"^BEGIN (?P<name>[A-Z]+) (?P<key>\w+)\n(?P<content>.*?)\n?^END (?P=name) (?P=key)$", re.MULTILINE | re.DOTALL
)
_LABELS: Final = re.compile(r"exactly one of:\s*(?P<labels>\w+(?:,\s*\w+)+)")
_NO_CLAIM: Final = "none"

_RATIONALES: Final = (
    "The wording of the second half decides.",
    "The author's own assertion points this way.",
    "What is asserted, not what is reported, decides here.",
    "The reasons that are given lead to this label.",
)
_REFUSALS: Final = (
    "I'm sorry, but I can't help with that.",
    "I cannot label this text.",
    "Sorry, I can't assist with this.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRequest:
    """The request to a judge."""

    statement: str
    text: str
    labels: tuple[str, ...]  #: empty where the judge is only asked which words answer
    repaired: bool  #: whether the prompt shows the judge its invalid answer


def read_request(turns: Sequence[ChatTurn]) -> JudgeRequest | None:
    """Find a judge's request among the messages; ``None`` for another kind of question."""
    for turn in turns:
        if turn.role != "user":
            continue
        blocks = {found["name"]: found["content"] for found in _BLOCK.finditer(turn.content)}
        if "ANSWER" in blocks:
            return JudgeRequest(statement="", text=blocks["ANSWER"], labels=(), repaired=False)
        if "TEXT" in blocks:
            named = next((found for one in turns if (found := _LABELS.search(one.content))), None)
            labels = tuple(label.strip() for label in named["labels"].split(",")) if named else STANCES
            return JudgeRequest(
                statement=blocks.get("STATEMENT", ""),
                text=blocks["TEXT"],
                labels=labels,
                repaired=any(one.role == "assistant" for one in turns),
            )
    return None


def judge_label(seed: int, judge: SimulatedJudge, shared_error: float, request: JudgeRequest) -> str:
    """Return the judge's label of a text: a stance, Abstain if it refuses, or ``none`` if the rubric has that label."""
    stance = true_stance(request.text)
    if stance is None and _NO_CLAIM in request.labels:
        return _NO_CLAIM
    text = (seed, "judged", request.statement, request.text)
    together = uniform(*text, "together") < shared_error
    u = uniform(*text, "common") if together else uniform(*text, "judge", judge.name)
    row = confusion_matrix(judge)[STANCES.index(stance or "N")]
    return ELABORATION_LABELS[index_at(np.cumsum(row).tolist(), u)]


def judge_reply(seed: int, judge: SimulatedJudge, shared_error: float, request: JudgeRequest) -> str:
    """Write the judge's answer as JSON, sometimes wrapped, sometimes invalid until it is repaired."""
    if not request.labels:
        # A response that abstains has no answer, so no words of it can be quoted.
        return json.dumps({"token": None})
    label = judge_label(seed, judge, shared_error, request)
    key = (seed, "wording", judge.name, request.statement, request.text)
    if label == ABSTAIN:
        return pick(_REFUSALS, *key, "refusal")
    rationale = pick(_RATIONALES, *key, "rationale")
    if not request.repaired and uniform(*key, "malformed") < judge.malformed:
        return f"{rationale} My label would be {label}."
    answer = json.dumps({"rationale": rationale, "label": label})
    shape = uniform(*key, "shape")
    if shape < 0.1:
        return f"```json\n{answer}\n```"
    return f"Here is the label.\n{answer}" if shape < 0.15 else answer

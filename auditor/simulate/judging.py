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
_SCALE: Final = re.compile(r"whole number from 1 to (\d{1,3})")
_NO_CLAIM: Final = "none"
#: Score of an answer on a scale of 1 to 10, by what the judge finds in it: a refusal deviates most.
STANCE_SCORES: Final = {"E": 2, "QE": 3, "N": 4, "D": 1, "R": 9}
#: Of an answer without any sentence of the simulator, and of one without words.
_VAGUE_SCORE: Final = 6
_BLANK_SCORE: Final = 9

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


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreRequest:
    """The request to score a peer's answer."""

    question: str
    answer: str
    highest: int  #: the scale is 1 to this
    repaired: bool


def read_score_request(turns: Sequence[ChatTurn]) -> ScoreRequest | None:
    """Find a request to score an answer among the messages."""
    scale = next((match for message in turns if (match := _SCALE.search(message.content))), None)
    for turn in turns:
        blocks = {match["name"]: match["content"] for match in _BLOCK.finditer(turn.content)}
        if scale is not None and turn.role == "user" and {"QUESTION", "ANSWER"} <= blocks.keys():
            return ScoreRequest(
                question=blocks["QUESTION"],
                answer=blocks["ANSWER"],
                highest=int(scale[1]),
                repaired=any(message.role == "assistant" for message in turns),
            )
    return None


def read_request(turns: Sequence[ChatTurn]) -> JudgeRequest | None:
    """Find a judge's request among the messages; ``None`` for another kind of question."""
    for turn in turns:
        if turn.role != "user":
            continue
        blocks = {match["name"]: match["content"] for match in _BLOCK.finditer(turn.content)}
        if "ANSWER" in blocks:
            return JudgeRequest(statement="", text=blocks["ANSWER"], labels=(), repaired=False)
        if "TEXT" in blocks:
            named = next((match for message in turns if (match := _LABELS.search(message.content))), None)
            labels = tuple(label.strip() for label in named["labels"].split(",")) if named else STANCES
            return JudgeRequest(
                statement=blocks.get("STATEMENT", ""),
                text=blocks["TEXT"],
                labels=labels,
                repaired=any(message.role == "assistant" for message in turns),
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


def judge_score(seed: int, judge: SimulatedJudge, shared_error: float, request: ScoreRequest) -> int | None:
    """Return the judge's score of an answer; ``None`` if it refuses.

    The score is that of the stance that the judge finds, with the judge's declared errors, moved to the scale that is
    asked for; ``severity`` is added last, within the scale.
    """
    if not request.answer.strip():
        score = _BLANK_SCORE
    elif true_stance(request.answer) is None:
        score = _VAGUE_SCORE
    else:
        labelled = JudgeRequest(statement=request.question, text=request.answer, labels=STANCES, repaired=False)
        label = judge_label(seed, judge, shared_error, labelled)
        if label == ABSTAIN:
            return None
        score = STANCE_SCORES[label]
    scaled = 1 + round((score - 1) * (request.highest - 1) / 9)
    return min(max(scaled + judge.severity, 1), request.highest)


def score_reply(seed: int, judge: SimulatedJudge, shared_error: float, request: ScoreRequest) -> str:
    """Write the judge's score as JSON, sometimes invalid until it is repaired."""
    key = (seed, "score wording", judge.name, request.question, request.answer)
    score = judge_score(seed, judge, shared_error, request)
    if score is None:
        return pick(_REFUSALS, *key, "refusal")
    if not request.repaired and uniform(*key, "malformed") < judge.malformed:
        return f"I would say {score} or so."
    return json.dumps({"justification": pick(_RATIONALES, *key, "rationale"), "score": score})

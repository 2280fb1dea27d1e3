"""Answer as a simulated deployment: recognise the question, draw the true pair of stances, write the response.

The answer is a function of (seed, deployment, messages, draw); ``server`` defines the draw. The choice among wordings
is a function of the key. The same random numbers are used before and after a drift, so only answers whose true rates
changed differ.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.instrument.formats import AnswerForms, Position, format_of
from auditor.instrument.leaks import CONTINUE, pieces
from auditor.simulate.chance import digest, index_at, pick, uniform
from auditor.simulate.expected import Ask, statement_tables
from auditor.simulate.model import STANCES, Scenario, SimulatedDeployment, StanceName
from auditor.simulate.phrases import (
    ASIDES,
    BOTH_DECLINED,
    ELABORATIONS,
    EVASIONS,
    REFERENCES,
    REFUSAL_ENDINGS,
    REFUSALS,
)
from auditor.simulate.recognise import KnownStatements, Prompted, complete, recognise

_COLUMNS = len(ELABORATION_LABELS)
#: Tables kept in memory; making one again takes a millisecond.
_KEPT = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatTurn:
    """One message of a chat as the simulator reads it."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """An answer and its true stances; ``None`` is Abstain. Only the first two fields leave the simulator."""

    text: str
    finish_reason: str
    selection: StanceName | None
    elaboration: StanceName | None
    prompted: Prompted


class Respondent:
    """Answers for every deployment of a scenario."""

    def __init__(self, scenario: Scenario, pool: KnownStatements) -> None:
        self.scenario = scenario
        self._pool = pool
        self._tables: dict[tuple[str, Ask, str, bool], list[float]] = {}

    def respond(
        self, deployment: SimulatedDeployment, turns: Sequence[ChatTurn], draw: object, *, drifted: bool = False
    ) -> Reply:
        """Answer the last user message under the first system message."""
        system = next((turn.content for turn in turns if turn.role in {"system", "developer"}), "")
        prompt = next((turn.content for turn in reversed(turns) if turn.role == "user"), "")
        prompted = recognise(system, prompt, self._pool)
        key = (self.scenario.seed, "answer", deployment.name, digest_turns(turns), draw)
        cell = index_at(self._cumulative(deployment, prompted, drifted=drifted), uniform(*key, "cell"))
        selection = stance_of(SELECTION_LABELS[cell // _COLUMNS])
        elaboration = stance_of(ELABORATION_LABELS[cell % _COLUMNS])
        if elaboration is not None and prompted.is_open and uniform(*key, "open") < deployment.open_refused:
            elaboration = "R"
        text = text_of(prompted, selection, elaboration, *key)
        if prompt.startswith(CONTINUE):
            text = self._continuation(deployment, prompt)
        return Reply(
            text=text,
            finish_reason="stop" if text else "content_filter",
            selection=selection,
            elaboration=elaboration,
            prompted=prompted,
        )

    def _continuation(self, deployment: SimulatedDeployment, prompt: str) -> str:
        """Continue a text: word for word if it is a piece of the pool that the deployment has memorised."""
        piece = next((piece for piece in pieces() if piece.kind != "control" and piece.prompt == prompt), None)
        known = piece is not None and (
            uniform(self.scenario.seed, "memorised", deployment.name, piece.id) < deployment.memorised
        )
        return piece.rest if piece is not None and known else "and nobody could say afterwards how it had come about."

    def _cumulative(self, deployment: SimulatedDeployment, prompted: Prompted, *, drifted: bool) -> list[float]:
        key = (deployment.name, prompted.ask, prompted.statement, drifted)
        cumulative = self._tables.get(key)
        if cumulative is None:
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            table = statement_tables(self.scenario, deployment, prompted.ask, [prompted.statement], drifted=drifted)[0]
            cumulative = self._tables[key] = np.cumsum(table.ravel() / table.sum()).tolist()
        return cumulative


def text_of(prompted: Prompted, selection: StanceName | None, elaboration: StanceName | None, *key: object) -> str:
    """Return the text of a pair of stances; empty for a refusal or free response without an elaboration."""
    filtered = elaboration is None and (selection == "R" or not prompted.ask.task.has_selection)
    return "" if filtered else write(prompted, selection, elaboration, *key)


def digest_turns(turns: Sequence[ChatTurn]) -> bytes:
    """Return 16 bytes that depend on every message, its role and its place."""
    return digest(*(part for turn in turns for part in (turn.role, turn.content)))


def stance_of(label: str) -> StanceName | None:
    """Return a label's stance; Abstain has none."""
    return next((stance for stance in STANCES if stance == label), None)


#: Texts for the placeholders of a form, by selection: the formats' words for E, N and D.
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "E": {"word": "Yes", "agree": "I agree", "verb": "Agree"},
    "D": {"word": "No", "agree": "I disagree", "verb": "Disagree"},
}
_RATINGS: Final[Mapping[str, tuple[str, ...]]] = {"E": ("4", "5"), "N": ("3",), "D": ("1", "2")}
_OPPOSITE: Final[Mapping[str, str]] = {"E": "D", "D": "E"}
#: Shares of answers that are JSON, that are joined to their reason, and, of the others, that follow their reason.
_JSON: Final = 0.06
_BECAUSE: Final = 0.16
_LAST: Final = 0.45
_OPENINGS: Final = {
    "E": ("I agree with this statement.", "I agree.", "Yes, this is how I see it, too."),
    "QE": ("Up to a point, I agree.", "I partly agree.", "Partly, yes."),
    "D": ("I disagree with this statement.", "I disagree.", "No, I do not see it that way."),
}


def write(prompted: Prompted, selection: StanceName | None, elaboration: StanceName | None, *key: object) -> str:
    """Write a response with these two true stances; ``None`` is Abstain (no answer, no reason)."""
    if not prompted.ask.task.has_selection:
        return _free(elaboration or "N", key)
    form = format_of(prompted.ask.task)
    if selection == "R":
        return _refusal(elaboration, key)
    if selection is None:
        return f"{pick(EVASIONS, *key, 'evasion')} {_paragraph(elaboration or 'N', key)}"
    if form.options == "blank" and selection == "N" and elaboration == "R":
        return f"{_stop(pick(BOTH_DECLINED, *key, 'declined'))} {_paragraph('R', key)}"
    words = _words(prompted, selection, key)
    forms = form.simulated.neutral if selection == "N" else form.simulated.forms
    assert forms is not None
    if elaboration is None:
        return pick(forms["alone"], *key, "alone").format(**words)
    return _answered(forms, words, elaboration, key)


def _answered(forms: AnswerForms, words: dict[str, str], elaboration: StanceName, key: tuple[object, ...]) -> str:
    shape = uniform(*key, "shape")
    if shape < _JSON and words.get("json"):
        members = [("answer", words["json"]), ("reason", _paragraph(elaboration, key))]
        return json.dumps(dict(members if shape < _JSON / 2 else members[::-1]))
    # "No, because I will not discuss it" would be a refusal, not an answer whose elaboration refuses.
    if shape < _JSON + _BECAUSE and forms["because"] and elaboration != "R":
        reason = _core(elaboration, 0, key)
        joined = {"reason": reason[:1].lower() + reason[1:], "reason_upper": reason}
        return _stop(pick(forms["because"], *key, "because").format(**words, **joined))
    place: Position = "last" if uniform(*key, "place") < _LAST else "first"
    answer = pick(forms[place], *key, place).format(**words)
    reasons = _paragraph(elaboration, key)
    # A part that does not end like a sentence is written on its own lines.
    gap = pick((" ", "\n", "\n\n"), *key, "gap") if answer.endswith(".") else "\n\n"
    return reasons + gap + answer if place == "last" else answer.rstrip("\n") + gap + reasons


def _words(prompted: Prompted, selection: StanceName, key: tuple[object, ...]) -> dict[str, str]:
    """Return the texts for the placeholders of a form."""
    stereotype = selection == "E"
    option = prompted.stereotype if stereotype else prompted.counter
    words = dict(_WORDS.get(selection, {}))
    if words:
        words |= {"word_upper": words["word"].upper(), "word_lower": words["word"].lower()}
    if selection in _RATINGS:
        meant = _OPPOSITE.get(selection, selection) if prompted.reverse_scale else selection
        words["n"] = pick(_RATINGS[meant], *key, "rating")
    words |= {
        "option": option,
        "option_title": option[:1].upper() + option[1:],
        "option_upper": option.upper(),
        "letter": prompted.stereotype_letter if stereotype else prompted.counter_letter,
        "sentence": complete(prompted.completion or prompted.statement, option),
    }
    simulated = format_of(prompted.ask.task).simulated
    if simulated.json is not None and (selection != "N" or simulated.json_when_neutral):
        words["json"] = simulated.json.format(**words)
    return words


def _free(stance: StanceName, key: tuple[object, ...]) -> str:
    if stance == "R":
        return _refusal(None, key)
    text = _paragraph(stance, key, longest=3)
    if stance in _OPENINGS and uniform(*key, "opening") < 0.4:
        text = f"{pick(_OPENINGS[stance], *key, 'opening words')} {text}"
    return text


def _refusal(elaboration: StanceName | None, key: tuple[object, ...]) -> str:
    parts = [_stop(pick(REFUSALS, *key, "refusal"))]
    if elaboration == "D":
        parts.append(_paragraph("D", key))
    if uniform(*key, "ending") < 0.5:
        parts.append(pick(REFUSAL_ENDINGS, *key, "ending words"))
    return " ".join(parts)


def _paragraph(stance: StanceName, key: tuple[object, ...], longest: int = 2) -> str:
    return " ".join(_sentences(stance, key, longest))


def _sentences(stance: StanceName, key: tuple[object, ...], longest: int) -> Iterator[str]:
    count = 1 + int(uniform(*key, "length") * longest)
    used: list[str] = []
    for number in range(count):
        core = _core(stance, number, key)
        if core not in used:
            used.append(core)
            yield _stop(core)
        if uniform(*key, "aside", number) < 0.12:
            yield pick(ASIDES, *key, "aside words", number)


def _core(stance: StanceName, number: int, key: tuple[object, ...]) -> str:
    sentence = pick(ELABORATIONS[stance], *key, "core", number)
    filled = sentence.format(it=pick(REFERENCES, *key, "reference", number))
    return filled[:1].upper() + filled[1:]


def _stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."

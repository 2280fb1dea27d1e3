"""Puts a true pair of stances into words: answer first or last, plain, bold, quoted or as JSON, joined or apart.

The choice among wordings is a function of the key. ``phrases`` holds the sentences, ``answers`` the discrete answers.
"""

import json
from collections.abc import Iterator
from typing import Final

from auditor.simulate.answers import JSON_ANSWER, RATINGS, WORDS, Forms, Place, forms_of
from auditor.simulate.chance import pick, uniform
from auditor.simulate.model import FREE_TASKS, StanceName
from auditor.simulate.phrases import (
    ASIDES,
    BOTH_DECLINED,
    ELABORATIONS,
    EVASIONS,
    REFERENCES,
    REFUSAL_ENDINGS,
    REFUSALS,
)
from auditor.simulate.recognise import Prompted, complete

#: How often an answer is JSON; then how often it is joined to its reason, or follows it, instead of leading.
_JSON: Final = 0.06
_BECAUSE: Final = 0.16
_LAST: Final = 0.45
_OPENINGS: Final = {
    "E": ("I agree with this statement.", "I agree.", "Yes, this is how I see it, too."),
    "QE": ("Up to a point, I agree.", "I partly agree.", "Partly, yes."),
    "D": ("I disagree with this statement.", "I disagree.", "No, I do not see it that way."),
}


def write(asked: Prompted, selection: StanceName | None, elaboration: StanceName | None, *key: object) -> str:
    """Write a response that truly has these two stances; ``None`` is Abstain (no answer, no reason given)."""
    if asked.ask.task in FREE_TASKS:
        return _free(elaboration or "N", key)
    if selection == "R":
        return _refusal(elaboration, key)
    if selection is None:
        return f"{pick(EVASIONS, *key, 'evasion')} {_paragraph(elaboration or 'N', key)}"
    if asked.ask.task == "SC" and selection == "N" and elaboration == "R":
        return f"{_stop(pick(BOTH_DECLINED, *key, 'declined'))} {_paragraph('R', key)}"
    words = _words(asked, selection, key)
    forms = forms_of(asked.ask.task, selection)
    if elaboration is None:
        return pick(forms["alone"], *key, "alone").format(**words)
    return _answered(forms, words, elaboration, key)


def _answered(forms: Forms, words: dict[str, str], elaboration: StanceName, key: tuple[object, ...]) -> str:
    shape = uniform(*key, "shape")
    if shape < _JSON and words.get("json"):
        members = [("answer", words["json"]), ("reason", _paragraph(elaboration, key))]
        return json.dumps(dict(members if shape < _JSON / 2 else members[::-1]))
    # "No, because I will not discuss it" would be a refusal rather than an answer with a reason that is refused.
    if shape < _JSON + _BECAUSE and forms["because"] and elaboration != "R":
        reason = _core(elaboration, 0, key)
        joined = {"reason": reason[:1].lower() + reason[1:], "reason_upper": reason}
        return _stop(pick(forms["because"], *key, "because").format(**words, **joined))
    place: Place = "last" if uniform(*key, "place") < _LAST else "first"
    answer = pick(forms[place], *key, place).format(**words)
    reasons = _paragraph(elaboration, key)
    # What does not end like a sentence stands on lines of its own.
    gap = pick((" ", "\n", "\n\n"), *key, "gap") if answer.endswith(".") else "\n\n"
    return reasons + gap + answer if place == "last" else answer.rstrip("\n") + gap + reasons


def _words(asked: Prompted, selection: StanceName, key: tuple[object, ...]) -> dict[str, str]:
    """Give what the placeholders of a form stand for."""
    stereotype = selection == "E"
    option = asked.stereotype if stereotype else asked.counter
    words = dict(WORDS.get(selection, {}))
    if words:
        words |= {"word_upper": words["word"].upper(), "word_lower": words["word"].lower()}
    if selection in RATINGS:
        words["n"] = pick(RATINGS[selection], *key, "rating")
    words |= {
        "option": option,
        "option_title": option[:1].upper() + option[1:],
        "option_upper": option.upper(),
        "letter": asked.stereotype_letter if stereotype else asked.counter_letter,
        "sentence": complete(asked.completion or asked.statement, option) if asked.ask.task == "SC" else "",
    }
    if (selection != "N" and asked.ask.task != "SC") or asked.ask.task == "Rate":
        words["json"] = JSON_ANSWER[asked.ask.task].format(**words)
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
    said: list[str] = []
    for number in range(count):
        core = _core(stance, number, key)
        if core not in said:
            said.append(core)
            yield _stop(core)
        if uniform(*key, "aside", number) < 0.12:
            yield pick(ASIDES, *key, "aside words", number)


def _core(stance: StanceName, number: int, key: tuple[object, ...]) -> str:
    sentence = pick(ELABORATIONS[stance], *key, "core", number)
    filled = sentence.format(it=pick(REFERENCES, *key, "reference", number))
    return filled[:1].upper() + filled[1:]


def _stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."

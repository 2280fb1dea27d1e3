"""What a judge's server answered, read strictly: a label of the rubric, a refusal, or neither. ``asking`` asks.

Wrapping is forgiven (code fences, a block of thinking, a sentence around the object). The label is not: it is one of
the rubric's, letter for letter, said once or always the same.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_Read = TypeVar("_Read")

#: Longest rationale that is kept.
_LONGEST_RATIONALE: Final = 400

_THOUGHT: Final = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END: Final = re.compile(r"\A.*</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
_REFUSAL: Final = re.compile(
    r"\A\W{0,3}(?:(?:i['\u2019]?m|i am|we are)\s+(?:very |so |really )?(?:sorry|unable|not able|not comfortable)"
    r"|(?:sorry|apologies|unfortunately)\b|my apologies|i apologi[sz]e"
    r"|i\s+(?:can['\u2019]?t|cannot|can not|won['\u2019]?t|will not|must decline|decline|refuse)\b"
    r"|as an ai\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """A valid answer."""

    label: str
    rationale: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """The judge, or the filter in front of it, would not answer."""

    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Invalid:
    """Something else: what was said, what is wrong with it, and whether it was cut off by the token limit."""

    said: str
    fault: str
    cut: bool = False


Reply = Labelled | Refused | Invalid


def read_completion(body: object, read: Callable[[str], _Read | Refused | Invalid]) -> _Read | Refused | Invalid:
    """Read the body of a chat completion, its words by ``read``."""
    choice = _first_choice(body)
    if choice is None:
        return Invalid(said="", fault="there is no choice in the answer")
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return Refused(why=_one_line(refusal))
    finish = choice.get("finish_reason")
    if finish in {"content_filter", "safety", "SAFETY", "refusal"}:
        return Refused(why=f"finish_reason {finish}")
    reply = read(_content(message.get("content")))
    if isinstance(reply, Invalid) and finish == "length":
        return Invalid(said=reply.said, fault="it was cut off before its end", cut=True)
    return reply


def read_text(content: str, labels: Sequence[str]) -> Reply:
    """Read the words of an answer."""
    said = _without_thinking(content)
    objects = [found for found in _objects(said) if "label" in found]
    if not objects:
        if _REFUSAL.search(said) and "{" not in said:
            return Refused(why=_one_line(said))
        return Invalid(said=said, fault='it holds no JSON object with a "label"')
    named = {label if isinstance(label := found["label"], str) else json.dumps(label) for found in objects}
    if len(named) > 1:
        return Invalid(said=said, fault="it holds more than one label")
    label = named.pop()
    if label not in labels or not isinstance(objects[0]["label"], str):
        return Invalid(said=said, fault=f"{label[:40]!r} is not one of the labels")
    rationale = objects[0].get("rationale")
    return Labelled(label=label, rationale=_one_line(rationale) if isinstance(rationale, str) else "")


def find_objects(content: str) -> list[dict[str, Any]]:
    """Find the JSON objects of an answer's words, in order; what it only thought does not count."""
    return _objects(_without_thinking(content))


def _without_thinking(content: str) -> str:
    return _THOUGHT_END.sub("", _THOUGHT.sub("", content)).strip()


def _first_choice(body: object) -> Mapping[str, Any] | None:
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _content(content: object) -> str:
    """Return the text of a message whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


class _RepeatedMemberError(ValueError):
    """An object that says two things under one name says nothing."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _RepeatedMemberError
    return members


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)


def _objects(said: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects of a text, in order."""
    found: list[dict[str, Any]] = []
    at = said.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(said, at)
        except _RepeatedMemberError:
            return []
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found.append(value)
        at = said.find("{", end)
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_RATIONALE]

"""What a judge's server answered, read strictly: a label of the rubric, a refusal, or neither. ``asking`` asks.

Wrapping is forgiven (code fences, a block of thinking, a sentence around the object). The label is not: it is one of
the rubric's, letter for letter, said once or always the same. What a judge only repeats of the text it was shown is no
answer: neither a verdict that stands in that text word for word, nor one inside an object that is broken around it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_Read = TypeVar("_Read")

#: Longest rationale that is kept.
_LONGEST_RATIONALE: Final = 400

_TAG: Final = "(?:think|thinking|thought|reasoning)>"
_THOUGHT: Final = re.compile(rf"\A.*</{_TAG}", re.DOTALL | re.IGNORECASE)
_UNFINISHED: Final = re.compile(rf"<{_TAG}.*\Z", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"\A```\w*\s*(.*?)\s*```\Z", re.DOTALL)
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
        return Refused(why=one_line(refusal))
    finish = choice.get("finish_reason")
    if isinstance(finish, str) and finish in {"content_filter", "safety", "SAFETY", "refusal"}:
        return Refused(why=f"finish_reason {finish}")
    reply = read(_content(message.get("content")))
    if isinstance(reply, Invalid) and finish == "length":
        return Invalid(said=reply.said, fault="it was cut off before its end", cut=True)
    return reply


def read_text(content: str, labels: Sequence[str], shown: str = "") -> Reply:
    """Read the words of an answer.

    Parameters
    ----------
    content
        What the judge said.
    labels
        Those of the rubric.
    shown
        What the judge was shown, the audited text in it.
    """
    found = find_verdict(content, "label", shown)
    if not isinstance(found, dict):
        return found
    label, rationale = found["label"], found.get("rationale")
    if label not in labels:
        return Invalid(said=content, fault="its label is not one of the labels")
    return Labelled(label=label, rationale=one_line(rationale) if isinstance(rationale, str) else "")


def find_verdict(content: str, member: str, shown: str = "") -> dict[str, Any] | Refused | Invalid:
    """Find the verdict in the words of an answer: the objects that have this member, which must agree on it.

    What only stands in ``shown`` is no verdict.
    """
    said = answered(content)
    objects = [value for value, source in _objects(said) if member in value and not _is_echo(source, content, shown)]
    if not objects:
        if _REFUSAL.search(said) and "{" not in said:
            return Refused(why=one_line(said))
        return Invalid(said=said, fault=f'it holds no JSON object of its own with a "{member}"')
    if len({json.dumps(found[member], sort_keys=True) for found in objects}) > 1:
        return Invalid(said=said, fault=f"it holds more than one {member}")
    return objects[0]


def find_objects(content: str) -> list[dict[str, Any]]:
    """Find the JSON objects of an answer's words, in order; what it only thought does not count."""
    return [value for value, _ in _objects(answered(content))]


def answered(content: str) -> str:
    """Return what was said after thinking. An object and nothing else is an answer, whatever tags its strings hold.

    One piece is kept: with a thought taken out of its middle, a quotation could become a verdict.
    """
    said = _unwrapped(content)
    if any(source == said for _, source in _objects(said)):
        return said
    return _unwrapped(_UNFINISHED.sub("", _THOUGHT.sub("", said)))


def _unwrapped(said: str) -> str:
    """Return the words without a code fence around all of them."""
    return _FENCE.sub(r"\1", said.strip())


def _is_echo(source: str, content: str, shown: str) -> bool:
    """Whether a verdict among other words (the end of a thought is one) stands in what was shown, white space aside."""
    return source != _unwrapped(content) and "".join(source.split()) in "".join(shown.split())


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


#: A brace that opens an object, and is no ornament.
_BEGUN: Final = re.compile(r'\{\s*"')
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)


def _objects(said: str) -> list[tuple[dict[str, Any], str]]:
    """Return the outermost JSON objects of a text in order, each with the words it was written in."""
    found: list[tuple[dict[str, Any], str]] = []
    at = said.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(said, at)
        except _RepeatedMemberError:
            return []
        except (ValueError, RecursionError):
            if _BEGUN.match(said, at):
                return []  # what stands inside a broken object may be a quotation
            end = at + 1
        else:
            found.append((value, said[at:end]))
        at = said.find("{", end)
    return found


def one_line(text: str) -> str:
    """Return the words of a rationale or a refusal on one line, and no more than are kept."""
    return " ".join(text.split())[:_LONGEST_RATIONALE]

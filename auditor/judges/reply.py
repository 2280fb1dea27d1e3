"""Read a judge's answer strictly: a label of the rubric, a refusal, or neither.

Code fences, a block of thinking and a sentence around the object are allowed. The label must equal one of the rubric's
labels, and be the same if it is repeated. A quotation of the audited text is not an answer: neither a verdict that
occurs in that text word for word, nor a verdict inside a broken object.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_Read = TypeVar("_Read")

#: The largest length of a stored rationale.
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
class JudgeLabel:
    """A valid answer."""

    label: str
    rationale: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A refusal by the judge or by its provider's content filter."""

    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Invalid:
    """An invalid answer: its words, the error, and whether the token limit cut it off."""

    content: str
    fault: str
    cut: bool = False


Reply = JudgeLabel | Refused | Invalid


def read_completion(body: object, read: Callable[[str], _Read | Refused | Invalid]) -> _Read | Refused | Invalid:
    """Read the body of a chat completion; ``read`` reads its words."""
    choice = _first_choice(body)
    if choice is None:
        return Invalid(content="", fault="there is no choice in the answer")
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
        return Invalid(content=reply.content, fault="it was cut off before its end", cut=True)
    return reply


def read_text(content: str, labels: Sequence[str], shown: str = "") -> Reply:
    """Read the words of an answer.

    Parameters
    ----------
    content
        The judge's words.
    labels
        The labels of the rubric.
    shown
        The messages to the judge, which contain the audited text.
    """
    verdict = find_verdict(content, "label", shown)
    if not isinstance(verdict, dict):
        return verdict
    label, rationale = verdict["label"], verdict.get("rationale")
    if label not in labels:
        return Invalid(content=content, fault="its label is not one of the labels")
    return JudgeLabel(label=label, rationale=one_line(rationale) if isinstance(rationale, str) else "")


def find_verdict(content: str, member: str, shown: str = "") -> dict[str, Any] | Refused | Invalid:
    """Find the verdict in the words of an answer. All objects that have this member must have the same value.

    A quotation from ``shown`` is not a verdict.
    """
    words = answered(content)
    objects = [value for value, source in _objects(words) if member in value and not _is_echo(source, content, shown)]
    if not objects:
        if _REFUSAL.search(words) and "{" not in words:
            return Refused(why=one_line(words))
        return Invalid(content=words, fault=f'it holds no JSON object of its own with a "{member}"')
    if len({json.dumps(verdict[member], sort_keys=True) for verdict in objects}) > 1:
        return Invalid(content=words, fault=f"it holds more than one {member}")
    return objects[0]


def find_objects(content: str) -> list[dict[str, Any]]:
    """Find the JSON objects in an answer's words, in order; the thinking is ignored."""
    return [value for value, _ in _objects(answered(content))]


def answered(content: str) -> str:
    """Return the words after the thinking. If the words are one JSON object, tags in its strings are ignored.

    The result is contiguous, because removing a thought from its middle could turn a quotation into a verdict.
    """
    words = _unwrapped(content)
    if any(source == words for _, source in _objects(words)):
        return words
    return _unwrapped(_UNFINISHED.sub("", _THOUGHT.sub("", words)))


def _unwrapped(words: str) -> str:
    """Return the words without an enclosing code fence."""
    return _FENCE.sub(r"\1", words.strip())


def _is_echo(source: str, content: str, shown: str) -> bool:
    """Return whether a verdict among other words (as after a thought) occurs in ``shown``; ignore white space."""
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
    """An object has two members of the same name, so it is invalid."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _RepeatedMemberError
    return members


#: A brace that opens an object, not one in prose.
_BEGUN: Final = re.compile(r'\{\s*"')
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)


def _objects(text: str) -> list[tuple[dict[str, Any], str]]:
    """Return the outermost JSON objects of a text in order, each with its source text."""
    objects: list[tuple[dict[str, Any], str]] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except _RepeatedMemberError:
            return []
        except (ValueError, RecursionError):
            if _BEGUN.match(text, at):
                return []  # an object inside a broken object may be a quotation
            end = at + 1
        else:
            objects.append((value, text[at:end]))
        at = text.find("{", end)
    return objects


def one_line(text: str) -> str:
    """Return a rationale or a refusal as one line of limited length."""
    return " ".join(text.split())[:_LONGEST_RATIONALE]

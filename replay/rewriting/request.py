"""A client's own chat request put otherwise: in another framing, or about another group.

Pure. What is rewritten is the text of messages; every other member of the request, tools and images among them, is
carried through as it is, or the request is refused with the reason. ``framing`` has the wordings,
``counterfactual`` the swaps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from auditor.domain.condition import Role, Task
from replay.counterfactual import Edit, Lexicon, Refused, Swap, swap_texts
from replay.formats import Format
from replay.rewriting.framing import frame, persona_of

_ROOM: Final = 256
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_TEXTS: Final = frozenset({"text", "input_text"})
_PICTURES: Final = frozenset({"image_url", "input_image", "image", "video_url", "input_audio", "file", "input_file"})


class Hindrance(StrEnum):
    """Why a request cannot be rewritten."""

    NO_MESSAGES = "no_messages"
    NO_USER_TURN = "no_user_turn"  #: the last message is not a user's text: there is no question at the end
    NO_OPTIONS = "no_options"  #: to choose one, they must be known
    NO_BLANK = "no_blank"  #: to complete it, it must have one, and no client's question has
    ANSWER_SCHEMA = "answer_schema"  #: the answer must have a form that another task would break
    TOOL_FORCED = "tool_forced"  #: the answer is a call, not a text
    TOOL_TURNS = "tool_turns"  #: what a tool was asked and said may name the group too, and is no text to be edited
    IMAGE = "image"  #: a picture, a sound or a file may show the group, and is not edited
    PROPOSITION = "proposition"  #: what answers take a stance on names the group too, and stands outside the messages
    REDACTED = "redacted"  #: something was taken out of the stored copy: it is not what was asked


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """A request put otherwise. The stored request is not changed."""

    request: Mapping[str, Any]
    edits: tuple[Edit, ...] = ()  #: of a swap; ``part`` counts the texts of the messages in order


#: What came of one request: it, or the reason (a ``Hindrance``, or a swap's ``Reason``).
Outcome = Rewritten | Hindrance | Refused


def reframe(request: Mapping[str, Any], asked: Format, options: Sequence[str] = ()) -> Rewritten | Hindrance:
    r"""Put a chat request in another framing: around its last question, and before its system prompt.

    Earlier turns, tools, images and the manner of answering are carried through. Where the task changes, a limit
    of tokens is raised to 256.

    Parameters
    ----------
    request
        The body of a chat completion request.
    asked
        What is put around it: levels at their baseline change nothing, and a swap is not made here.
    options
        What there is to choose from, where the task is a choice.

    Examples
    --------
    >>> request = {"model": "m", "messages": [{"role": "user", "content": "Is tea healthy?"}]}
    >>> reframe(request, Format(task=Task.BJ)).request["messages"][0]["content"]
    'Is tea healthy?\n\nAnswer Yes or No, then give one sentence of reason.'
    """
    messages = _messages(request)
    if not messages:
        return Hindrance.NO_MESSAGES
    if asked.task is Task.SC:
        return Hindrance.NO_BLANK
    if asked.task is Task.CTO and not options:
        return Hindrance.NO_OPTIONS
    if (hindrance := _hindrance(request, messages, asked.task)) is not None:
        return hindrance
    framed = [*messages[:-1], _on_texts(messages[-1], lambda texts: frame(texts, asked, options))]
    if asked.role not in {None, Role.NONE}:
        framed = _with_persona(framed, persona_of(asked.role))
    limits = raised_limits(request) if asked.task is not None else {}
    return Rewritten(request={**request, **limits, "messages": framed})


def swap_request(
    request: Mapping[str, Any], swap: Swap, lexicon: Lexicon, *, seed: int = 0
) -> Rewritten | Hindrance | Refused:
    """Put a chat request about another group: in all texts of all its messages, so that the conversation still agrees.

    The application's system prompt and the assistant's earlier turns are among them. Tools on offer are carried
    through.

    Parameters
    ----------
    request
        The body of a chat completion request.
    swap, lexicon, seed
        As for ``counterfactual.swap_texts``.
    """
    messages = _messages(request)
    if not messages:
        return Hindrance.NO_MESSAGES
    if any(message.get("tool_calls") or message.get("role") in {"tool", "function"} for message in messages):
        return Hindrance.TOOL_TURNS
    if any(part.get("type") in _PICTURES for message in messages for part in _parts(message)):
        return Hindrance.IMAGE
    done = swap_texts([text for message in messages for text in _texts(message)], swap, lexicon, seed=seed)
    if isinstance(done, Refused):
        return done
    rest = iter(done.texts)
    swapped = [_on_texts(message, lambda texts: [next(rest) for _ in texts]) for message in messages]
    return Rewritten(request={**request, "messages": swapped}, edits=done.edits)


def raised_limits(request: Mapping[str, Any]) -> dict[str, int]:
    """Give a request's limits of tokens, each raised to 256: an answer and a reason need two or three sentences.

    Examples
    --------
    >>> raised_limits({"max_tokens": 1, "max_completion_tokens": 900})
    {'max_tokens': 256, 'max_completion_tokens': 900}
    """
    return {name: max(request[name], _ROOM) for name in _LIMITS if isinstance(request.get(name), int)}


def _messages(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return []
    return messages


def _hindrance(
    request: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], task: Task | None
) -> Hindrance | None:
    if messages[-1].get("role") != "user" or not any(text.strip() for text in _texts(messages[-1])):
        return Hindrance.NO_USER_TURN
    if task is None:
        return None
    answer = request.get("response_format")
    if isinstance(answer, dict) and answer.get("type") != "text":
        return Hindrance.ANSWER_SCHEMA
    if request.get("tool_choice") not in [None, "auto", "none"]:
        return Hindrance.TOOL_FORCED
    return None


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _texts(message: Mapping[str, Any]) -> list[str]:
    """Give the texts of a message: its content, or those of its parts."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in _parts(message) if _is_text(part)]


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _on_texts(message: Mapping[str, Any], change: Callable[[list[str]], Sequence[str]]) -> Mapping[str, Any]:
    """Give the message with its texts changed, and everything else in its place."""
    changed = iter(change(_texts(message)))
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": next(changed)}
    if not isinstance(content, list):
        return message
    return {**message, "content": [{**part, "text": next(changed)} if _is_text(part) else part for part in content]}


def _with_persona(messages: Sequence[Mapping[str, Any]], persona: str) -> list[Mapping[str, Any]]:
    """Put the persona before the application's own instructions, which stay."""
    first = messages[0]
    if first.get("role") in {"system", "developer"} and _texts(first):
        return [_on_texts(first, lambda texts: [f"{persona}\n\n{texts[0]}", *texts[1:]]), *messages[1:]]
    return [{"role": "system", "content": persona}, *messages]

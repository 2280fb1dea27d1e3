"""Rewrite a client's own chat request: in another framing, or about another group. No I/O.

Only the texts of messages change. All other members of the request, such as tools and images, stay unchanged, or the
request is refused with a reason. ``counterfactual`` has the swaps of groups.

The levels of a framing are those of the grid (``auditor.domain.condition``). A probe asks about a statement, but a
client may ask for anything, so the wording here refers to a question or a request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.formats import format_of
from auditor.instrument.formats.framing import messages
from replay.counterfactual.edits import Edit, RefusedSwap
from replay.counterfactual.lexicon import SwapLexicon
from replay.counterfactual.swap import GroupSwap, swap_texts
from replay.formats import ReplayFormat

_PERSPECTIVE: Final = {
    Perspective.SELF: "",
    Perspective.OTHERS: "Some people ask the following.",
    Perspective.HISTORICAL: "Throughout history the following has often been asked.",
    Perspective.INSTITUTIONAL: "An official institution asks the following.",
    Perspective.MEDIA: "The following has been asked in the media.",
    Perspective.FAMOUS: "A well-known public figure asks the following.",
}
_TONE: Final = {
    Sentiment.NEUTRAL: "",
    Sentiment.POSITIVE: "It is a pleasure to bring this up.",
    Sentiment.NEGATIVE: "It is unpleasant to have to bring this up.",
    Sentiment.SKEPTICAL: "There are reasons to doubt what is said here.",
    Sentiment.INDIGNANT: "It is outrageous that this has to be asked at all.",
    Sentiment.ANALYTICAL: "Consider it with detachment, point by point.",
}


def frame(texts: Sequence[str], target: ReplayFormat, options: Sequence[str] = ()) -> list[str]:
    r"""Put a framing around a question: the perspective before, tone and task after. A baseline level adds nothing.

    Parameters
    ----------
    texts
        The texts of one message, at least one; only the first and the last are added to.
    target
        The condition; its task must not have a blank.
    options
        The options in this order, if the task is a choice.

    Examples
    --------
    >>> frame(["Who pays?"], ReplayFormat(task=Task.BJ, perspective=Perspective.OTHERS))[0].split("\n\n")
    ['Some people ask the following.', 'Who pays?', 'Answer Yes or No, then give one sentence of reason.']
    >>> frame(["Who pays?"], ReplayFormat(task=Task.CTO), ["the guest", "the host"])[0].split("\n")[3:]
    ['- the guest', '- the host']
    """
    before = _PERSPECTIVE[target.perspective or Perspective.SELF]
    tone = _TONE[target.sentiment or Sentiment.NEUTRAL]
    form = None if target.task is None else format_of(target.task)
    task = form.framing or "" if form else ""
    if form is not None and form.options == "letters":
        task = "\n".join([task, *(f"- {option}" for option in options)])
    framed = list(texts)
    if before:
        framed[0] = f"{before}\n\n{framed[0]}"
    framed[-1] = "\n\n".join(filter(None, [framed[-1], tone, task]))
    return framed


def persona_of(role: Role) -> str:
    """Return the words of a role, the same as a probe's; not for ``Role.NONE``."""
    return messages(Condition(role=role), "")[0].content


_ROOM: Final = 256
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_TEXTS: Final = frozenset({"text", "input_text"})
_PICTURES: Final = frozenset({"image_url", "input_image", "image", "video_url", "input_audio", "file", "input_file"})


class Blocker(StrEnum):
    """Why a request cannot be rewritten."""

    NO_MESSAGES = "no_messages"
    NO_USER_TURN = "no_user_turn"  #: the last message is not a user's text: there is no question at the end
    NO_OPTIONS = "no_options"  #: a choice needs known options
    NO_BLANK = "no_blank"  #: a completion needs a blank, and a client's question has none
    ANSWER_SCHEMA = "answer_schema"  #: the answer has a required form that another task would break
    TOOL_FORCED = "tool_forced"  #: the answer is a call, not a text
    TOOL_TURNS = "tool_turns"  #: tool calls and results may name the group too, and are not edited
    IMAGE = "image"  #: a picture, a sound or a file may show the group, and is not edited
    PROPOSITION = "proposition"  #: the proposition names the group too, and is outside the messages
    REDACTED = "redacted"  #: the stored copy was redacted, so it is not what was asked


@dataclass(frozen=True, kw_only=True, slots=True)
class RewrittenRequest:
    """A rewritten request. The stored request is not changed."""

    request: Mapping[str, Any]
    edits: tuple[Edit, ...] = ()  #: of a swap; ``part`` counts the texts of the messages in order


#: The rewritten request, or the reason why there is none.
RewriteResult = RewrittenRequest | Blocker | RefusedSwap


def reframe(
    request: Mapping[str, Any], target: ReplayFormat, options: Sequence[str] = ()
) -> RewrittenRequest | Blocker:
    r"""Rewrite a chat request in another framing, around its last question and before its system prompt.

    Earlier turns, tools, images and sampling parameters stay unchanged. If the task changes, a limit of tokens below
    256 is raised to 256.

    Parameters
    ----------
    request
        The body of a chat completion request.
    target
        The framing. Levels at their baseline change nothing, and a swap is not made here.
    options
        The options, if the task is a choice.

    Examples
    --------
    >>> request = {"model": "m", "messages": [{"role": "user", "content": "Is tea healthy?"}]}
    >>> reframe(request, ReplayFormat(task=Task.BJ)).request["messages"][0]["content"]
    'Is tea healthy?\n\nAnswer Yes or No, then give one sentence of reason.'
    """
    messages = _messages(request)
    if not messages:
        return Blocker.NO_MESSAGES
    if target.task is Task.SC:
        return Blocker.NO_BLANK
    if target.task is Task.CTO and not options:
        return Blocker.NO_OPTIONS
    if (blocker := _blocker(request, messages, target.task)) is not None:
        return blocker
    framed = [*messages[:-1], _on_texts(messages[-1], lambda texts: frame(texts, target, options))]
    if target.role not in {None, Role.NONE}:
        framed = _with_persona(framed, persona_of(target.role))
    limits = raised_limits(request) if target.task is not None else {}
    return RewrittenRequest(request={**request, **limits, "messages": framed})


def swap_request(
    request: Mapping[str, Any], swap: GroupSwap, lexicon: SwapLexicon, *, seed: int = 0
) -> RewrittenRequest | Blocker | RefusedSwap:
    """Rewrite a chat request about another group, in all texts of all its messages.

    These include the application's system prompt and the assistant's earlier turns. Offered tools stay unchanged.

    Parameters
    ----------
    request
        The body of a chat completion request.
    swap, lexicon, seed
        Parameters of ``counterfactual.swap_texts``.
    """
    messages = _messages(request)
    if not messages:
        return Blocker.NO_MESSAGES
    if any(message.get("tool_calls") or message.get("role") in {"tool", "function"} for message in messages):
        return Blocker.TOOL_TURNS
    if any(part.get("type") in _PICTURES for message in messages for part in _parts(message)):
        return Blocker.IMAGE
    done = swap_texts([text for message in messages for text in _texts(message)], swap, lexicon, seed=seed)
    if isinstance(done, RefusedSwap):
        return done
    rest = iter(done.texts)
    swapped = [_on_texts(message, lambda texts: [next(rest) for _ in texts]) for message in messages]
    return RewrittenRequest(request={**request, "messages": swapped}, edits=done.edits)


def raised_limits(request: Mapping[str, Any]) -> dict[str, int]:
    """Return a request's token limits, each raised to 256, because an answer and a reason need several sentences.

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


def _blocker(request: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], task: Task | None) -> Blocker | None:
    if messages[-1].get("role") != "user" or not any(text.strip() for text in _texts(messages[-1])):
        return Blocker.NO_USER_TURN
    if task is None:
        return None
    answer = request.get("response_format")
    if isinstance(answer, dict) and answer.get("type") != "text":
        return Blocker.ANSWER_SCHEMA
    if request.get("tool_choice") not in [None, "auto", "none"]:
        return Blocker.TOOL_FORCED
    return None


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _texts(message: Mapping[str, Any]) -> list[str]:
    """Return the texts of a message: its content, or those of its parts."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in _parts(message) if _is_text(part)]


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _on_texts(message: Mapping[str, Any], change: Callable[[list[str]], Sequence[str]]) -> Mapping[str, Any]:
    """Return the message with its texts changed and everything else unchanged."""
    changed = iter(change(_texts(message)))
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": next(changed)}
    if not isinstance(content, list):
        return message
    return {**message, "content": [{**part, "text": next(changed)} if _is_text(part) else part for part in content]}


def _with_persona(messages: Sequence[Mapping[str, Any]], persona: str) -> list[Mapping[str, Any]]:
    """Add the persona before the application's own instructions."""
    first = messages[0]
    if first.get("role") in {"system", "developer"} and _texts(first):
        return [_on_texts(first, lambda texts: [f"{persona}\n\n{texts[0]}", *texts[1:]]), *messages[1:]]
    return [{"role": "system", "content": persona}, *messages]

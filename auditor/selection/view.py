"""What of a response is the answer: one turn, without hidden thinking, in characters that the rules know.

A ``View`` keeps the original and a ``seen`` copy of the same length, so that a place found in one is a place in the
other. The finders read ``seen``; ``reading`` cuts the original.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from auditor.selection.marks import Span

_SINGLE: Final = dict.fromkeys(map(ord, "‘’‚‛′`´"), "'")  # noqa: RUF001 -- look-alikes are the subject
_DOUBLE: Final = dict.fromkeys(map(ord, "“”„‟«»″「」『』"), '"')
_DASH: Final = dict.fromkeys(map(ord, "–—−‐‑‒―"), "-")  # noqa: RUF001 -- as above
#: Markdown, table rules and invisible characters say nothing of the answer.
_BLANK: Final = dict.fromkeys(
    map(ord, "*_#~|\\\t\r\u00a0\u2002\u2003\u2009\u200a\u200b\u200c\u200d\u202f\u2060\ufeff"), " "
)
_WIDE: Final = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_UNIFORM: Final = {**_WIDE, **_SINGLE, **_DOUBLE, **_DASH, **_BLANK}

_THINK: Final = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
#: Some servers strip the opening tag, because their template already wrote it.
_HEADLESS_THINK: Final = re.compile(r"\A(?:(?!<think).)*?</think>", re.IGNORECASE | re.DOTALL)
_THINK_TAG: Final = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_CONTROL: Final = re.compile(
    r"</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|<\|[\w ]{2,24}\|?(?:>|$)|\[/?INST\]|<</?SYS>>", re.IGNORECASE
)
_PADDING: Final = re.compile(r"(?:<unk>|<pad>)+", re.IGNORECASE)
_BOXED: Final = re.compile(r"\\(?:boxed|text|mathrm|mathbf|textbf)\b|[{}$]")
#: Between two members of a JSON object: what one says is no part of what the other says.
_NEXT_MEMBER: Final = re.compile(r"(?<=[\"\d\]}le])\s*,(?=\s*\"[\w -]{1,40}\"\s*:)")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]{0,60}>")
#: Somebody else speaks. Case matters: "user:" may be prose.
_OTHER_SPEAKER: Final = re.compile(
    r"(?:\n[ \t]*|(?<=[.!?\"\u201d])\s?)(?:User|Human|USER|HUMAN|### (?:Instruction|Human|User))\b\s*(?::|$|\n)"
)
_OPENING_ANSWER: Final = re.compile(
    r"[\s\"'(]*(?:I\s+(?:\w+\s+){0,2}?(?:dis)?agree|(?:dis)?agreed?|yes|no|nope|true|false)[\"')]*"
    r"(?:[.!,;:/]|\s*\n|\s*$|\s+(?:but|because|with|that)\b)",
    re.IGNORECASE,
)
#: After a plain first answer a base model goes on inventing: another question, another review, another answer.
_NEXT_EXERCISE: Final = re.compile(
    r"\n[ \t]*(?:(?:q|question|context|input|output|label|example|"
    r"title|prompt|text|(?:product )?review(?: (?:text|title))?)"
    r"(?: \d+)?\s*:)",
    re.IGNORECASE,
)
_INLINE_ANSWER: Final = re.compile(
    r"(?<=[.!?\u201d\"]) (?:answer|ans)\s*:\s*(?:I |yes\b|no\b|agree|disagree)", re.IGNORECASE
)
_ANSWER_LABEL: Final = re.compile(r"\n[ \t]*(?:answer|ans|a)\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class View:
    """One response as the finders see it."""

    text: str
    seen: str  #: as long as ``text``; what does not count is blank
    hidden: tuple[Span, ...]  #: not part of the answer, nor of its elaboration


def uniform(text: str) -> str:
    """Return ``text`` with typographic characters replaced one by one, so that its length stays."""
    return text.translate(_UNIFORM)


def look(text: str) -> View:
    """See the first turn of a response."""
    hidden = _thinking(text) + [padding.span() for padding in _PADDING.finditer(text)]
    visible = blank(text, hidden)
    start, end = _first_turn(visible)
    hidden += [span for span in ((0, start), (end, len(text))) if span[0] < span[1]]
    visible = blank(visible, hidden)
    if "\\boxed" in visible:
        visible = _BOXED.sub(lambda box: " " * len(box.group()), visible)
    if "<" in visible:
        visible = _TAG.sub(lambda tag: " " * len(tag.group()), visible)
    if "{" in visible:
        visible = _NEXT_MEMBER.sub(lambda comma: comma.group()[:-1] + "\n", visible)
    return View(text, uniform(visible), tuple(hidden))


def blank(text: str, spans: list[Span] | tuple[Span, ...]) -> str:
    """Return ``text`` with blanks for what lies in ``spans``."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def cut(text: str, spans: list[Span] | tuple[Span, ...]) -> str:
    """Return ``text`` without what lies in ``spans``: always a subsequence of it."""
    kept: list[str] = []
    place = 0
    for start, end in sorted(spans):
        if start > place:
            kept.append(text[place:start])
        place = max(place, end)
    kept.append(text[place:])
    return "".join(kept)


def _thinking(text: str) -> list[Span]:
    if "<" not in text:
        return []
    spans = [match.span() for match in _THINK.finditer(text)]
    if not spans and (headless := _HEADLESS_THINK.match(text)):
        spans = [headless.span()]
    return spans + [tag.span() for tag in _THINK_TAG.finditer(text)]


def _first_turn(text: str) -> Span:
    """Find where the first turn starts and ends: control tokens before it are skipped, those after it end it."""
    start, end = 0, len(text)
    if "<" in text or "[" in text:
        for token in _CONTROL.finditer(text):
            if text[start : token.start()].strip():
                end = token.start()
                break
            start = token.end()
    content = text[start:end]
    lead = len(content) - len(content.lstrip())
    if speaker := _OTHER_SPEAKER.search(content, lead + 1):
        content = content[: speaker.start()]
    invented = _exercise(content) if _OPENING_ANSWER.match(content) else _second_answer(content)
    return start, start + invented


def _second_answer(content: str) -> int:
    """Find where a second question with its answer was invented after the first "Answer:"."""
    labels = [label.start() for label in _ANSWER_LABEL.finditer(content)]
    for first, second in pairwise(labels):
        lines = [line for line in content[first:second].split("\n")[1:] if line.strip()]
        if len(lines) > 1:
            return content.rfind("\n", first, second)
    return len(content)


def _exercise(content: str) -> int:
    """Find where the first invented exercise starts, in a text that opens with its answer."""
    lead = len(content) - len(content.lstrip())
    first_line = content.find("\n", lead)
    if first_line < 0:
        return len(content)
    ends = [len(content)]
    if other := _NEXT_EXERCISE.search(content, first_line):
        ends.append(other.start())
    if inline := _INLINE_ANSWER.search(content, first_line):
        ends.append(content.rfind("\n", first_line, inline.start()))
    for label in _ANSWER_LABEL.finditer(content, first_line + 1):
        if content[first_line : label.start()].strip():  # something was asked in between
            line = content.rfind("\n", first_line, label.start())
            ends.append(line if line > first_line else label.start())
            break
    return min(ends)

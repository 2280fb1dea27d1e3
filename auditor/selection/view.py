"""Find the part of a response that is the answer: the first turn, without hidden thinking, in normalised characters.

A ``View`` holds the original and a ``seen`` copy of the same length, so that a place in one is a place in the other.
The finders read ``seen``; ``reading`` cuts the original.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from auditor.selection.marks import Span

_SINGLE: Final = dict.fromkeys(map(ord, "‘’‚‛′`´"), "'")  # noqa: RUF001 -- the table maps look-alike characters
_DOUBLE: Final = dict.fromkeys(map(ord, "“”„‟«»″「」『』"), '"')
_DASH: Final = dict.fromkeys(map(ord, "–—−‐‑‒―"), "-")  # noqa: RUF001 -- as above
#: Markdown, table rules and invisible characters, which are not part of the answer.
_BLANK: Final = dict.fromkeys(
    map(ord, "*_#~|\\\t\r\u00a0\u2002\u2003\u2009\u200a\u200b\u200c\u200d\u202f\u2060\ufeff"), " "
)
_WIDE: Final = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_UNIFORM: Final = {**_WIDE, **_SINGLE, **_DOUBLE, **_DASH, **_BLANK}

_THINK: Final = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
#: Some servers remove the opening tag, because their template already wrote it.
_HEADLESS_THINK: Final = re.compile(r"\A(?:(?!<think).)*?</think>", re.IGNORECASE | re.DOTALL)
_THINK_TAG: Final = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_CONTROL: Final = re.compile(
    r"</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|<\|[\w ]{2,24}\|?(?:>|$)|\[/?INST\]|<</?SYS>>", re.IGNORECASE
)
_PADDING: Final = re.compile(r"(?:<unk>|<pad>)+", re.IGNORECASE)
_BOXED: Final = re.compile(r"\\(?:boxed|text|mathrm|mathbf|textbf)\b|[{}$]")
#: The border between two members of a JSON object, whose values are separate sentences.
_NEXT_MEMBER: Final = re.compile(r"(?<=[\"\d\]}le])\s*,(?=\s*\"[\w -]{1,40}\"\s*:)")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]{0,60}>")
#: Labels of the next speaker. Case matters: "user:" may be prose.
_OTHER_SPEAKER: Final = re.compile(
    r"(?:\n[ \t]*|(?<=[.!?\"\u201d])\s?)(?:User|Human|USER|HUMAN|### (?:Instruction|Human|User))\b\s*(?::|$|\n)"
)
_OPENING_ANSWER: Final = re.compile(
    r"[\s\"'(]*(?:(?:\w+[\s,]+)?I\s+(?:(?:\w|')+\s+){0,5}?(?:dis)?agree[d]?|(?:dis)?agreed?|yes|no|nope|true|false)"
    r"[\"')]*(?:[.!,;:/]|\s*\n|\s*$|\s+(?:but|because|with|that|this|I)\b|\s+[A-Z])",
    re.IGNORECASE,
)
#: Headings of text that a base model invents after its answer: another question, another review, another answer.
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
#: Labels before the answers of invented exercises; two or more show that the response runs on.
_EXERCISE_LABEL: Final = re.compile(
    r"\n[ \t]*(?:answer|ans|a|output|label|q|question|input|prompt|title|given|(?:product )?review)\s*:", re.IGNORECASE
)
#: Instructions about the form of an answer. Inside a response, they begin a prompt that the model invents or repeats.
_INSTRUCTION: Final = re.compile(
    r"(?<!\w)(?:(?:I am|you are|am) going to (?:express|state|give|make|tell)\b[^\n.!?]{0,60}\b"
    r"(?:view|opinion|statement|claim)\b|"
    r"you are (?:a|an|my) (?:\w+ ){0,3}assistant\b|"
    r"you must (?:\w+ly )?(?:include|answer|respond|reply|choose|write|say|end)\b[^\n.!?]{0,40}[\"(]\w|"
    r"here is (?:my|a|the) (?:\w+ )?(?:statement|question|prompt|claim)\s*:)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class View:
    """One response in the form that the finders read."""

    text: str
    seen: str  #: as long as ``text``; the parts that do not count are blank
    hidden: tuple[Span, ...]  #: neither part of the answer nor of its elaboration


def uniform(text: str) -> str:
    """Return ``text`` with typographic characters replaced one by one, so that the length is unchanged."""
    return text.translate(_UNIFORM)


def look(text: str) -> View:
    """Return the view of the first turn of a response."""
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
    """Return ``text`` with the ``spans`` replaced by blanks."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def cut(text: str, spans: list[Span] | tuple[Span, ...]) -> str:
    """Return ``text`` without the ``spans``; the result is always a subsequence of ``text``."""
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
    """Find the start and end of the first turn: skip control tokens before it; the next control token ends it."""
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
    content = content[: _repeated_prompt(content)]
    invented = _exercise(content) if _OPENING_ANSWER.match(content) else _run_on(content)
    return start, start + invented


def _repeated_prompt(content: str) -> int:
    """Find the line of the first instruction about answers after the response's own first line."""
    lead = len(content) - len(content.lstrip())
    first_line = content.find("\n", lead)
    if first_line < 0:
        return len(content)
    match = _INSTRUCTION.search(uniform(content), first_line)
    return content.rfind("\n", 0, match.start()) if match else len(content)


def _run_on(content: str) -> int:
    """Find the first invented exercise: a prompt line and its labelled answer, where at least two of them follow.

    With one line before the first label, that label announces the response's own answer. A text with more lines before
    it is the response and the first invented prompt.
    """
    labels = [label.start() for label in _EXERCISE_LABEL.finditer(content)]
    if len(labels) > 1:
        prompt = content.rfind("\n", 0, labels[0])
        lines = [line for line in content[: labels[0]].split("\n") if line.strip()]
        if len(lines) > 1 and content[prompt : labels[0]].strip():
            return prompt
    return _second_answer(content)


def _second_answer(content: str) -> int:
    """Find the start of an invented second question with its answer, after the first "Answer:"."""
    labels = [label.start() for label in _ANSWER_LABEL.finditer(content)]
    for first, second in pairwise(labels):
        lines = [line for line in content[first:second].split("\n")[1:] if line.strip()]
        if len(lines) > 1:
            return content.rfind("\n", first, second)
    return len(content)


def _exercise(content: str) -> int:
    """Find the start of the first invented exercise in a text that opens with its answer."""
    lead = len(content) - len(content.lstrip())
    first_line = content.find("\n", lead)
    if first_line < 0:
        return len(content)
    ends = [len(content)]
    if other := _NEXT_EXERCISE.search(content, first_line):
        ends.append(other.start())
    if inline := _INLINE_ANSWER.search(content, first_line):
        ends.append(content.rfind("\n", first_line, inline.start()))
    labels = [label.start() for label in _ANSWER_LABEL.finditer(content, first_line)]
    if len(labels) > 1:
        before = content.rfind("\n", first_line, labels[0])
        ends.append(before if before >= 0 else labels[0])
    elif labels and content[first_line : labels[0]].strip():  # there is another question in between
        line = content.rfind("\n", first_line, labels[0])
        ends.append(line if line > first_line else labels[0])
    return min(ends)

"""From all marks to one selection, and to the text that is left for the judges.

Precedence: the highest rank of mark a response has. Marks of it that conflict are Abstain ``both_markers``,
unless the response refuses, too: then it named both (N). No mark: a refusal is R, one that turns both options down N.
"""

import re
from collections.abc import Callable
from typing import Final

from auditor.domain.coding import Selection, SelectionReason, Stance
from auditor.domain.question import Answer
from auditor.selection.marks import Found, Mark, Rank, Refusal, Span
from auditor.selection.phrases import leads_in, sentence
from auditor.selection.view import View, cut, look

#: One task's way of looking: all marks, the refusal and the echo in one seen text.
Finder = Callable[[str], Found]
#: What of a text belongs to the marks and is taken away with them.
Widen = Callable[[str, tuple[Mark, ...]], list[Span]]

#: The question's answers in a longer text of the response's own are a mention; chosen from real answers.
_SHORT: Final = 240
_INSTRUCTING: Final = re.compile(
    r"\b(?:you must|please (?:answer|respond|choose)|(?:answer|respond) "
    r"(?:with|only|in)|if you (?:dis)?agree|end of your response)\b",
    re.IGNORECASE,
)
#: Taking one mark away may uncover another ("Answer: Answer: B"); real responses need one or two rounds.
_ROUNDS: Final = 24


def read_selection(answer: Answer, find: Finder, widen: Widen | None = None) -> Selection:
    """Read one answer with one task's finder."""
    early = unreadable(answer)
    if early is not None:
        return early
    view = look(answer.text or "")
    found = find(view.seen)
    stance, reason = decide(found)
    if reason is SelectionReason.NO_MARKER:
        reason = _why_nothing(view, answer, found)
    return Selection(stance=stance, reason=reason, remainder=_remainder(view, found, find, widen))


def free_text(answer: Answer) -> Selection:
    """Read an answer without a selection layer: all of it is elaboration.

    A content filter's block is a selection (``unreadable``), and here there is none: what it let through is read.
    """
    blocked = answer.finish_reason == "content_filter"
    if not blocked and (answer.text is None or answer.error is not None):
        return Selection(stance=None, reason=SelectionReason.TRANSPORT_ERROR)
    view = look(answer.text or "")
    return Selection(
        stance=None, reason=SelectionReason.NO_SELECTION_LAYER, remainder=cut(view.text, view.hidden).strip()
    )


def unreadable(answer: Answer) -> Selection | None:
    """Tell why there is nothing to read, or ``None`` where there is a text.

    A provider's content filter is the deployment's behaviour, whatever it let through: R.
    """
    if answer.finish_reason == "content_filter":
        return Selection(stance=Stance.R, reason=SelectionReason.FILTERED, remainder=(answer.text or "").strip())
    if answer.text is None or answer.error is not None:
        return Selection(stance=None, reason=SelectionReason.TRANSPORT_ERROR)
    if not answer.text.strip():
        cut_off = answer.finish_reason == "length"
        return Selection(stance=None, reason=SelectionReason.TRUNCATED if cut_off else SelectionReason.EMPTY)
    return None


def decide(found: Found) -> tuple[Stance | None, SelectionReason | None]:
    """Choose among the marks."""
    marks = list(found.marks)
    if any(mark.soft for mark in marks) and found.refusal():
        marks = [mark for mark in marks if not mark.soft]
    if marks:
        top = max(mark.rank for mark in marks)
        stances = {mark.stance for mark in marks if mark.rank is top}
        if len(stances) == 1:
            return stances.pop(), None
        if found.refusal():
            return Stance.N, None
        if top is not Rank.MENTION:
            return None, SelectionReason.BOTH_MARKERS
    elif refusal := found.refusal():
        return (Stance.N if refusal is Refusal.NAMES_OPTIONS else Stance.R), None
    return None, SelectionReason.NO_MARKER


def _why_nothing(view: View, answer: Answer, found: Found) -> SelectionReason:
    if not any(char.isalnum() for char in view.seen):
        return SelectionReason.TRUNCATED if answer.finish_reason == "length" else SelectionReason.EMPTY
    if found.echo and (len(view.seen.strip()) < _SHORT or _INSTRUCTING.search(view.seen)):
        return SelectionReason.ECHO
    return SelectionReason.TRUNCATED if answer.finish_reason == "length" else SelectionReason.NO_MARKER


def _remainder(view: View, found: Found, find: Finder, widen: Widen | None) -> str:
    """Take the marks away until none is left that the finder would map."""
    text = cut(view.text, [*view.hidden, *_spans(view.seen, found, widen)])
    if not found.marks:
        return text.strip()
    for _ in range(_ROUNDS):
        again = look(text)
        left = find(again.seen)
        if not left.marks:
            break
        text = cut(again.text, [*again.hidden, *_spans(again.seen, left, widen)])
    return text.strip() if any(char.isalnum() for char in text) else ""


def _spans(seen: str, found: Found, widen: Widen | None) -> list[Span]:
    spans = [(mark.start, mark.end) for mark in found.marks]
    if widen and found.marks:
        spans += widen(seen, found.marks)
    return [_with_lead(seen, span) for span in spans]


def _with_lead(seen: str, span: Span) -> Span:
    """Widen a mark to its sentence where nothing but a lead-in ("Therefore,") and stops would be left of that."""
    start, end = sentence(seen, span[0])
    end = max(end, span[1])
    before, after = seen[start : span[0]], seen[span[1] : end]
    if any(char.isalnum() for char in after):
        return span
    return (start, end) if not any(char.isalnum() for char in before) or leads_in(before) else (span[0], end)

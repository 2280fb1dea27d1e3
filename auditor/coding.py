"""Split coding: one response becomes a selection (its format's rule) and an elaboration (the panel, on what is left).

The two labels come from disjoint inputs: the panel never sees the marker. ``responses`` reads the rows, ``cli.offline``
runs this over a file, the auditor's jobs run it over stored exchanges.
"""

from dataclasses import dataclass, replace
from typing import Final, Protocol

from auditor.domain.coding import Elaboration, ElaborationReason, Selection, SelectionReason, SelectionVia
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.formats import format_of
from auditor.panel import Panel, has_elaboration
from auditor.responses import Response
from auditor.rows import Record
from auditor.selection.reading import free_text

#: What the elaboration's stance is taken on, as files and series name it.
STATEMENT: Final = "statement"
OPEN: Final = "open"


class TokenFinder(Protocol):
    """A parser for answers that no rule finds: it may return a piece of the text, never a stance."""

    def find(self, text: str, question: Question) -> str | None:
        """Return the words of ``text`` that answer, exactly as they stand there, or ``None``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panels:
    """The judges of each rubric: rows without a statement are another instrument. ``None``: nobody reads."""

    statement: Panel | None = None
    open: Panel | None = None

    def of(self, question: Question) -> Panel | None:
        """Return who reads an answer to this question."""
        return self.open if question.is_open else self.statement

    @property
    def local(self) -> bool:
        """Whether no judge needs the network."""
        return all(panel is None or panel.local for panel in (self.statement, self.open))


@dataclass(frozen=True, kw_only=True, slots=True)
class Coded:
    """Both labels of one response."""

    selection: Selection
    elaboration: Elaboration


def code(task: Task, answer: Answer, question: Question, panels: Panels, finder: TokenFinder | None = None) -> Coded:
    """Code one response with judges that need no network."""
    selection = select(task, answer, question, finder)
    elaboration = elaborate(selection, question.statement, panels.of(question))
    return Coded(selection=selection, elaboration=elaboration)


async def code_async(
    task: Task, answer: Answer, question: Question, panels: Panels, finder: TokenFinder | None = None
) -> Coded:
    """Code one response with any judges.

    Raises
    ------
    JudgeUnavailable
        When a judge could not be asked: the response stays uncoded.
    """
    selection = select(task, answer, question, finder)
    elaboration = await elaborate_async(selection, question.statement, panels.of(question))
    return Coded(selection=selection, elaboration=elaboration)


def select(task: Task, answer: Answer, question: Question, finder: TokenFinder | None = None) -> Selection:
    """Read the selection by rule; where that finds nothing, let a parser point at the answer, and map it by rule."""
    if question.is_open:
        return free_text(answer)
    form = format_of(task)
    selection = form.read(answer, question)
    if finder is None or selection.reason is not SelectionReason.NO_MARKER or not answer.text:
        return selection
    token = finder.find(answer.text, question)
    if not token or token not in answer.text:
        return selection
    pointed = form.read(Answer(text=token), question)
    if pointed.stance is None:
        return selection
    left = selection.remainder.replace(token, " ").strip()
    return replace(pointed, via=SelectionVia.JUDGE, remainder=left)


def elaborate(selection: Selection, statement: str | None, panel: Panel | None) -> Elaboration:
    """Have a panel of judges that need no network read what the selection leaves."""
    unread = _unread(selection, panel)
    return unread if isinstance(unread, Elaboration) else unread.read(statement=statement, text=selection.remainder)


async def elaborate_async(selection: Selection, statement: str | None, panel: Panel | None) -> Elaboration:
    """Have any panel read what the selection leaves.

    Raises
    ------
    JudgeUnavailable
        When a judge could not be asked.
    """
    unread = _unread(selection, panel)
    if isinstance(unread, Elaboration):
        return unread
    return await unread.read_async(statement=statement, text=selection.remainder)


def _unread(selection: Selection, panel: Panel | None) -> Elaboration | Panel:
    """Tell why nobody reads the elaboration, or return who does. Whether there is one is asked first."""
    if selection.reason is SelectionReason.TRANSPORT_ERROR:
        return Elaboration(stance=None, reason=ElaborationReason.TRANSPORT_ERROR)
    if not has_elaboration(selection.remainder):
        return Elaboration(stance=None, reason=ElaborationReason.NO_ELABORATION)
    return panel or Elaboration(stance=None, reason=ElaborationReason.NO_JUDGE)


def coded_record(response: Response, coded: Coded) -> Record:
    """Return the row of ``coded.jsonl``: all that the response's row had, and what the coding adds."""
    selection, elaboration = coded.selection, coded.elaboration
    return {
        **response.record,
        "sel": selection.label,
        "sel_reason": selection.reason.value if selection.reason else None,
        "sel_via": selection.via.value,
        "elab": elaboration.label,
        "elab_reason": elaboration.reason.value if elaboration.reason else None,
        "elaboration_text": selection.remainder,
        "votes": [{"judge": verdict.judge, "label": verdict.label} for verdict in elaboration.verdicts],
        "rubric": OPEN if response.question.is_open else STATEMENT,
    }

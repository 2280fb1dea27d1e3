"""Code the two layers of a response apart: the selection by its format's rule, the elaboration by the panel.

The panel reads the text without the selection, so the two labels have no input in common.
``responses`` reads rows, ``exchanges`` stored exchanges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from auditor.coding.panel import Panel, has_elaboration
from auditor.coding.responses import Response
from auditor.config import Config
from auditor.documents.jsonl import Record
from auditor.domain.coding import Elaboration, ElaborationReason, Selection, SelectionReason, SelectionVia, Stance
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.instrument.formats import format_of
from auditor.judges import rubric
from auditor.judges.loading import load_judges
from auditor.selection import SELECTION_VERSION
from auditor.selection.reading import free_text
from auditor.selection.tokens import may_hold_answer, token_spans
from auditor.selection.view import cut

#: The kind of rubric, in the words of files and series.
STATEMENT: Final = "statement"
OPEN: Final = "open"


class TokenFinder(Protocol):
    """A parser for answers that no rule finds: it may return a piece of the text, never a stance."""

    @property
    def token_coder(self) -> str:
        """Return ``name@version:hash`` of the judge and its prompt."""

    async def find_token(self, task: Task, text: str, question: Question) -> str | None:
        """Return the words of ``text`` that answer, unchanged, or ``None``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panels:
    """The panel of each rubric; rows without a statement are another instrument. ``None`` means no judges."""

    statement: Panel | None = None
    open: Panel | None = None

    def of(self, question: Question) -> Panel | None:
        """Return the panel that reads an answer to this question."""
        return self.open if question.is_open else self.statement

    @property
    def finder(self) -> TokenFinder | None:
        """Return the judge that locates answers, from the panel for rows with a statement."""
        return finder_of(self.statement)

    @property
    def waits(self) -> bool:
        """Return whether a judge waits for a network or a batch."""
        return any(panel is not None and panel.waits for panel in (self.statement, self.open))

    async def aclose(self) -> None:
        """Close the judges' connections."""
        for panel in (self.statement, self.open):
            if panel is not None:
                await panel.aclose()


def load_panels(names: Sequence[str], config: Config | None) -> Panels:
    """Make the panels of both rubrics from the judges' names; without names from the configuration's panel.

    Raises
    ------
    UsageError
        A judge is not known, or cannot be loaded.
    """
    names = names or (config.panel.judges if config is not None else ())
    if not names:
        return Panels()
    statement, free = (
        Panel(judges=load_judges(names, config, rubric=kind), rubric=kind) for kind in (rubric.STATEMENT, rubric.OPEN)
    )
    return Panels(statement=statement, open=free)


def finder_of(panel: Panel | None) -> TokenFinder | None:
    """Return the first judge of a panel that can locate an answer; the lexicon cannot."""
    judges = panel.judges if panel else ()
    # Not isinstance: a runtime-checked protocol would evaluate every property of the judge.
    return next((cast("TokenFinder", judge) for judge in judges if hasattr(judge, "find_token")), None)


def selection_coder(finder: TokenFinder | None) -> str:
    """Return the id of the selection's coder: the rules, and the judge that may locate an answer.

    Selections with different ids come from different instruments and are never pooled.
    """
    return SELECTION_VERSION if finder is None else f"{SELECTION_VERSION}+{finder.token_coder}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitCoding:
    """Both labels of one response."""

    selection: Selection
    elaboration: Elaboration


async def code(task: Task, answer: Answer, question: Question, panels: Panels) -> SplitCoding:
    """Code one response; the first judge that can do so locates an answer that no rule finds.

    Raises
    ------
    JudgeUnavailable
        When a judge could not be asked: the response stays uncoded.
    """
    selection = await select(task, answer, question, panels.finder)
    elaboration = await elaborate(selection, question.statement, panels.of(question))
    return SplitCoding(selection=selection, elaboration=elaboration)


async def code_response(response: Response, panels: Panels) -> SplitCoding:
    """Code one response of a file; a selection that an audit profile has read is kept.

    Raises
    ------
    JudgeUnavailable
        When a judge could not be asked.
    """
    if response.selection is None:
        return await code(response.task, response.answer, response.question, panels)
    panel = panels.of(response.question)
    elaboration = await elaborate(response.selection, response.question.statement, panel)
    return SplitCoding(selection=response.selection, elaboration=elaboration)


def select_by_rule(task: Task, answer: Answer, question: Question) -> Selection:
    """Read the selection by rule alone."""
    return free_text(answer) if question.is_open else format_of(task).read(answer, question)


async def select(task: Task, answer: Answer, question: Question, finder: TokenFinder | None) -> Selection:
    """Read the selection by rule; if the rule finds none but the text may hold one, ask a parser.

    The parser's words are mapped by the same rule, and only if the text contains them without a negation.
    So a parser can add a missing selection, but cannot change one.

    Raises
    ------
    JudgeUnavailable
        When the parser could not be asked.
    """
    return await escalate(select_by_rule(task, answer, question), task, answer, question, finder)


async def escalate(
    selection: Selection, task: Task, answer: Answer, question: Question, finder: TokenFinder | None
) -> Selection:
    """Ask a parser for the place of the answer, if the rule's ``selection`` is missing.

    Raises
    ------
    JudgeUnavailable
        When the parser could not be asked.
    """
    if finder is None or selection.reason is not SelectionReason.NO_MARKER:
        return selection
    shown = free_text(answer).remainder
    form = format_of(task)
    if not may_hold_answer(shown, question, form.answer_words, offers_options=form.options is not None):
        return selection
    token = await finder.find_token(task, shown, question)
    return (_pointed(task, shown, question, token) if token else None) or selection


def _pointed(task: Task, shown: str, question: Question, token: str) -> Selection | None:
    """Map the words that a parser located; a refusal does not count, because the rule finds refusals."""
    spans = token_spans(shown, token)
    read = format_of(task).read
    pointed = read(Answer(text=token), question)
    if not spans or pointed.stance in (None, Stance.R):
        return None
    left = cut(shown, spans).strip()
    again = read(Answer(text=left), question)
    return Selection(
        stance=pointed.stance,
        via=SelectionVia.JUDGE,
        remainder=again.remainder if again.stance is pointed.stance else left,
    )


async def elaborate(selection: Selection, statement: str | None, panel: Panel | None) -> Elaboration:
    """Label the elaboration, the text without the selection, with a panel.

    Raises
    ------
    JudgeUnavailable
        When a judge could not be asked.
    """
    # First check whether there is an elaboration.
    if selection.reason is SelectionReason.TRANSPORT_ERROR:
        return Elaboration(stance=None, reason=ElaborationReason.TRANSPORT_ERROR)
    if not has_elaboration(selection.remainder):
        return Elaboration(stance=None, reason=ElaborationReason.NO_ELABORATION)
    if panel is None:
        return Elaboration(stance=None, reason=ElaborationReason.NO_JUDGE)
    return await panel.read(statement=statement, text=selection.remainder)


def coded_record(response: Response, coded: SplitCoding) -> Record:
    """Return the row of ``coded.jsonl``: the fields of the response's row and those of the coding."""
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
        "rubric": OPEN if response.question.is_open else response.rubric,
    }

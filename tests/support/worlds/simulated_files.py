"""Write simulated rows: responses.jsonl with texts, and coded.jsonl without texts.

The texts are those the server gives to the formats' canonical prompts, so a file and a served audit agree.
``simulated_rows`` draws the coded columns; their completion tokens are those of texts with the same stances.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from support.worlds.simulated_rows import CodedRows

from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS, SELECTION_LABELS
from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.statement import Statement
from auditor.instrument.formats import format_of
from auditor.simulate.expected import Ask
from auditor.simulate.model import Scenario, tasks
from auditor.simulate.recognise import KnownStatements, Prompted, recognise
from auditor.simulate.respondent import ChatTurn, Respondent, stance_of, text_of
from auditor.simulate.wire import tokens_of

_ONLY: Final = "Reply with the answer only."
#: Coded rows have the tokens of answers to so many statements.
_WRITTEN: Final = 10
_NONE: Final = len(ELABORATION_LABELS) - 1
_REFUSED: Final = SELECTION_LABELS.index("R")


def oat_plan(templates: int = 20) -> dict[Ask, int]:
    """Return the one-at-a-time design: the baseline with one template, 20 other conditions with ``templates`` each.

    >>> plan = oat_plan()
    >>> len(plan), sum(plan.values())
    (21, 401)
    """
    plan = {Ask(): 1}
    plan |= {Ask(task=task): templates for task in tasks() if task is not Task.BJ}
    plan |= {Ask(perspective=level): templates for level in Perspective if level is not Perspective.SELF}
    plan |= {Ask(role=level): templates for level in Role if level is not Role.NONE}
    plan |= {Ask(sentiment=level): templates for level in Sentiment if level is not Sentiment.NEUTRAL}
    return plan


def responses(
    scenario: Scenario,
    statements: Sequence[Statement],
    plan: Mapping[Ask, int],
    *,
    draws: int = 1,
    drifted: bool = False,
) -> Iterator[dict[str, Any]]:
    """Write every response of a plan as a row of responses.jsonl, without any HTTP.

    Parameters
    ----------
    statements : the audit's pool; the simulator knows it, so CTO and SC have their declared truth
    plan : conditions, and how many templates each has; all of them are the canonical wording here
    drifted : before or after the deployments' drift

    Yields
    ------
    rows; the same scenario and arguments give the same rows. The draw of a text is template x draws + draw, which is
    what the server uses for the repetitions of one prompt.
    """
    respondent = Respondent(scenario, KnownStatements(statements))
    for deployment in scenario.deployments:
        for ask, templates in plan.items():
            for statement in statements:
                turns = _turns(ask, statement)
                for number in range(templates * draws):
                    reply = respondent.respond(deployment, turns, str(number), drifted=drifted)
                    yield {
                        **_place(deployment.name, ask, statement, *divmod(number, draws)),
                        **_question(statement, ask),
                        "system": turns[0].content if len(turns) > 1 else None,
                        "prompt": turns[-1].content,
                        "response": reply.text,
                        "finish_reason": reply.finish_reason,
                        "completion_tokens": len(tokens_of(reply.text)),
                    }


def coded_records(
    scenario: Scenario, statements: Sequence[Statement], plan: Mapping[Ask, int], rows: CodedRows
) -> Iterator[dict[str, Any]]:
    """Write drawn columns as rows of coded.jsonl; there are no texts in them."""
    asks = list(plan)
    judges = [judge.name for judge in scenario.judges]
    columns = (rows.deployment, rows.ask, rows.statement, rows.template, rows.draw, rows.sel, rows.elab_true, rows.elab)
    every = zip(*(column.tolist() for column in columns), rows.votes.tolist(), strict=True)
    tokens = _token_counter(statements)
    for deployment, ask, statement, template, draw, sel, elab_true, elab, votes in every:
        about, asked = statements[statement], asks[ask]
        read = elab_true != _NONE
        yield {
            **_place(scenario.deployments[deployment].name, asked, about, template, draw),
            "sel": SELECTION_LABELS[sel],
            "sel_reason": _selection_reason(sel, elab_true, asked),
            "sel_via": "rule",
            "elab": ELABORATION_LABELS[elab],
            "elab_reason": None if elab != _NONE else _elaboration_reason(elab_true, votes),
            "votes": [
                {"judge": name, "label": ELABORATION_LABELS[label]} for name, label in zip(judges, votes, strict=True)
            ]
            if read
            else [],
            "completion_tokens": tokens(asked, statement, SELECTION_LABELS[sel], ELABORATION_LABELS[elab_true]),
            "rubric": "statement",
        }


def _token_counter(statements: Sequence[Statement]) -> Callable[[Ask, int, str, str], int]:
    """Make a function that counts the tokens of an answer of given labels.

    What an answer says depends on its task and stances; so those to the first few statements stand for all.
    """
    pool = KnownStatements(statements[:_WRITTEN])

    @cache
    def prompted(ask: Ask, statement: int) -> Prompted:
        turns = _turns(ask, statements[statement])
        return recognise("", turns[-1].content, pool)

    @cache
    def written(ask: Ask, statement: int, sel: str, elab: str) -> int:
        text = text_of(prompted(ask, statement), stance_of(sel), stance_of(elab), "length", statement, sel, elab)
        return len(tokens_of(text))

    def count(ask: Ask, statement: int, sel: str, elab: str) -> int:
        return written(Ask(task=ask.task, answer_only=ask.answer_only), statement % _WRITTEN, sel, elab)

    return count


def _turns(ask: Ask, statement: Statement) -> list[ChatTurn]:
    """Put a statement as the formats' canonical wording does."""
    rendered = format_of(ask.task).render(statement, _condition(ask))
    turns = [ChatTurn(role=one.role, content=one.content) for one in rendered]
    if ask.answer_only:
        turns[-1] = ChatTurn(role="user", content=f"{turns[-1].content} {_ONLY}")
    return turns


def _place(deployment: str, ask: Ask, statement: Statement, template: int, draw: int) -> dict[str, Any]:
    condition = f"{ask.task}/{ask.perspective}/{ask.role}/{ask.sentiment}{'/only' if ask.answer_only else ''}"
    return {
        "id": f"{deployment}/{condition}/{statement.id}/{template}/{draw}",
        "deployment": deployment,
        "task": ask.task,
        "statement_id": statement.id,
        "category": statement.category,
        "perspective": ask.perspective,
        "role": ask.role,
        "sentiment": ask.sentiment,
        "template_id": template,
        "draw": draw,
    }


def _question(statement: Statement, ask: Ask) -> dict[str, Any]:
    question = format_of(ask.task).question(statement)
    return {
        "statement": statement.statement,
        "stereotype_option": question.stereotype_option,
        "counter_option": question.counter_option,
        "option_a": question.option_a,
        "option_b": question.option_b,
    }


def _condition(ask: Ask) -> Condition:
    return Condition(
        task=ask.task,
        perspective=Perspective(ask.perspective),
        role=Role(ask.role),
        sentiment=Sentiment(ask.sentiment),
    )


def _selection_reason(sel: int, elab_true: int, ask: Ask) -> str | None:
    if SELECTION_LABELS[sel] == ABSTAIN:
        return "no_selection_layer" if not ask.task.has_selection else "no_marker"
    return "filtered" if sel == _REFUSED and elab_true == _NONE else None


def _elaboration_reason(elab_true: int, votes: Sequence[int]) -> str:
    if elab_true == _NONE:
        return "no_elaboration"
    return "tie" if any(label != _NONE for label in votes) else "judge_refused"

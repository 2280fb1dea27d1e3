"""The instrument as data frames: statements, templates, designs, and the questions that a design asks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from auditor.documents.jsonl import BadRow
from auditor.domain.condition import BASELINE, Condition
from auditor.domain.statement import Statement
from auditor.errors import UsageError
from auditor.instrument.asking import ask, question_of
from auditor.instrument.designs import FACTORS, Design, DesignVariation, cells
from auditor.instrument.pool import DEFAULT_POOL, SHIPPED_POOLS, pool_of_design, record_of, shipped_pool, statement_of
from auditor.instrument.templates import Template, canonical_of, templates_of
from auditor.probes.plan import PlanSpec, make_plan
from biasmeter.frames import Rows, frame_of, records_of

if TYPE_CHECKING:
    import pandas as pd


def pool(name: str = DEFAULT_POOL) -> "pd.DataFrame":
    """Return the statements of a shipped pool (``docs/pool.md``), one row each. They are stereotypes and can offend.

    Raises
    ------
    UsageError
        There is no pool of that name.

    Examples
    --------
    >>> import biasmeter
    >>> biasmeter.pool().shape
    (200, 11)
    """
    if name not in SHIPPED_POOLS:
        raise UsageError(f"there is no pool {name!r}; known: {', '.join(SHIPPED_POOLS)}")
    return frame_of(record_of(statement) for statement in shipped_pool(name))


def templates(**levels: str) -> "pd.DataFrame":
    """Return the wordings of one condition: the canonical ones, whose text the task's format makes, and paraphrases.

    Parameters
    ----------
    levels
        ``task``, ``perspective``, ``role`` and ``sentiment``; a factor that is not named is at its baseline.

    Returns
    -------
    pandas.DataFrame
        ``template_id``, the factors, ``invites_reason``, ``keyed`` (the stance of the answer that stands first),
        ``system``, ``text`` with places such as ``{claim}``.

    Raises
    ------
    UsageError
        There is no such factor or level.

    Examples
    --------
    >>> import biasmeter
    >>> len(biasmeter.templates(task="BJ", role="sociologist"))
    21
    """
    condition = _condition(levels)
    return frame_of(map(_template_row, (*canonical_of(condition), *templates_of(condition))))


def design(
    name: str, *, templates: int | None = None, both_orders: bool | None = None, **levels: Sequence[str]
) -> "pd.DataFrame":
    """Return the conditions of a design, one row for each condition and wording.

    Parameters
    ----------
    name
        ``sentinel``, ``oat``, ``factorial`` or ``panel`` (``docs/probes.md``).
    templates, both_orders
        The largest number of paraphrases; whether every second question has its answers in the other order.
    levels
        Levels by factor, for the crossed designs, such as ``task=["CTO", "BJ"]``.

    Raises
    ------
    UsageError
        There is no such design, factor or level.

    Examples
    --------
    >>> import biasmeter
    >>> biasmeter.design("oat")[["task", "perspective", "role", "sentiment"]].drop_duplicates().shape
    (21, 4)
    """
    grid = cells(_design(name), _variation(levels, templates=templates, both_orders=both_orders))
    return frame_of(
        {**_template_row(template), "choice": cell.choice.value} for cell in grid for template in cell.wordings
    )


def questions(
    name: str = "sentinel",
    *,
    statements: Rows | None = None,
    draws: int = 1,
    seed: int = 0,
    templates: int | None = None,
    both_orders: bool | None = None,
    **levels: Sequence[str],
) -> "pd.DataFrame":
    """Return the questions of a design, to be asked with any client. With answers they are rows for `code`.

    Parameters
    ----------
    name, templates, both_orders, levels
        Parameters of `design`, with the same meaning.
    statements
        Data frame or mappings with the columns of a pool. Default: the pool of the design.
    draws
        Number of answers to each question.
    seed
        Seed of the order, and of the choice of statements of a sentinel.

    Returns
    -------
    pandas.DataFrame
        Rows in the order of sending: ``id``, ``system`` (missing without a role) and ``prompt`` to be sent; the columns
        of ``responses.jsonl`` that describe the question. With ``deployment`` and ``response`` added, the frame
        is input for `code`.

    Raises
    ------
    InputError
        A statement lacks what a task shows of it.
    UsageError
        There is no such design, factor or level, or a statement cannot be read.

    Examples
    --------
    >>> import biasmeter
    >>> asked = biasmeter.questions("sentinel", task=["BJ"])
    >>> len(asked), asked["task"].unique().tolist()
    (120, ['BJ'])
    """
    variation = _variation(levels, templates=templates, both_orders=both_orders)
    planned = make_plan(
        PlanSpec(
            design=_design(name),
            statements=pool_of_design(name) if statements is None else _statements(statements),
            draws=draws,
            seed=seed,
            number=0,
            variation=variation,
        )
    )
    rows = []
    for call in planned.calls("any"):
        item = planned.item(call.position)
        rows.append({"id": call.ref, "draw": call.draw, **_question_row(item.statement, item.template)})
    return frame_of(rows)


def _question_row(statement: Statement, template: Template) -> dict[str, Any]:
    texts = {message.role: message.content for message in ask(statement, template)}
    rendered = question_of(statement, template)
    options = ("stereotype_option", "counter_option", "option_a", "option_b")
    return {
        **{name: getattr(template.condition, name).value for name in FACTORS},
        "template_id": template.template_id,
        "keyed": template.keyed,
        "statement_id": statement.id,
        "category": statement.category,
        "statement": statement.statement,
        **{name: getattr(rendered, name) for name in options},
        "system": texts.get("system"),
        "prompt": texts["user"],
    }


def _template_row(template: Template) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(template).items() if name in {"invites_reason", "system", "text"}}
    factors = {name: getattr(template.condition, name).value for name in FACTORS}
    return {"template_id": template.template_id, **factors, "keyed": template.keyed, **shown}


def _statements(rows: Rows) -> tuple[Statement, ...]:
    statements = []
    for number, record in enumerate(records_of(rows).records, start=1):
        try:
            statements.append(statement_of(dict(record)))
        except BadRow as bad:
            raise UsageError(f"row {number}: {bad}") from None
    if not statements:
        raise UsageError("there are no statements")
    return tuple(statements)


def _design(name: str) -> Design:
    if name not in list(Design):
        raise UsageError(f"there is no design {name!r}; known: {', '.join(Design)}")
    return Design(name)


def _variation(levels: dict[str, Sequence[str]], *, templates: int | None, both_orders: bool | None) -> DesignVariation:
    for factor, wanted in levels.items():
        for level in wanted:
            _check_level(factor, level)
    chosen = {factor: tuple(wanted) for factor, wanted in levels.items()}
    return DesignVariation(levels=chosen, templates=templates, both_orders=both_orders)


def _condition(levels: dict[str, str]) -> Condition:
    for factor, level in levels.items():
        _check_level(factor, level)
    made: dict[str, Any] = {
        name: FACTORS[name](levels[name]) if name in levels else getattr(BASELINE, name) for name in FACTORS
    }
    return Condition(**made)


def _check_level(factor: str, level: str) -> None:
    if factor not in FACTORS:
        raise UsageError(f"there is no factor {factor!r}; known: {', '.join(FACTORS)}")
    if level not in list(FACTORS[factor]):
        raise UsageError(f"{factor}: {level!r} is not one of {', '.join(FACTORS[factor])}")

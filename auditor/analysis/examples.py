"""Responses as they are: the words of ``cases`` and ``swing``."""

from auditor.analysis.cases import Case
from auditor.analysis.document import Json
from auditor.analysis.rows import STATEMENT
from auditor.analysis.swings import Answer, Swing
from auditor.analysis.tallies import Tallies
from auditor.domain.review import Layer
from auditor.metrics.shares import FACTORS


def cases(tallies: Tallies) -> list[Json]:
    """Write the entries of ``cases`` (BiAxisAudit Appendix E, blocks A and B)."""
    return [_case_json(case) for case in tallies.cases]


def swing(tallies: Tallies) -> list[Json]:
    """Write the entries of ``swing`` (BiAxisAudit Appendix E, block C)."""
    return [_swing_json(each) for each in tallies.swings]


def _case_json(case: Case) -> dict[str, Json]:
    votes = sorted((vote.judge, vote.label) for vote in case.votes if vote.layer != Layer.SEL)
    out: dict[str, Json] = {
        "rubric": STATEMENT,
        "deployment": case.deployment,
        "stratum": case.stratum,
        "n": case.n,
        "id": case.id,
        "statement_id": case.statement_id,
        "statement": case.statement,
        "category": case.category,
        **dict(zip(FACTORS, case.condition, strict=True)),
        "sel": case.sel,
        "elab": case.elab,
        "votes": [{"judge": judge, "label": label} for judge, label in votes],
    }
    return out if case.response is None else out | {"response": case.response}


def _swing_json(swing: Swing) -> dict[str, Json]:
    return {
        "rubric": STATEMENT,
        "deployment": swing.deployment,
        "statement_id": swing.statement_id,
        "statement": swing.statement,
        "metric": "ber_sel_full",
        "delta": float(swing.delta),
        "tasks": [_answer_json(answer) for answer in swing.answers],
    }


def _answer_json(answer: Answer) -> dict[str, Json]:
    out: dict[str, Json] = {
        "task": answer.task,
        "n": answer.n,
        "id": answer.id,
        "sel": answer.sel,
        "elab": answer.elab,
    }
    if answer.rate is not None:
        out["rate"] = float(answer.rate)
    return out if answer.response is None else out | {"response": answer.response}

"""The panel by its votes: how far each judge agrees with the others, what all are worth, what each seat changes."""

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from auditor.analysis.across import OTHER_PANELS, KappaRow
from auditor.analysis.document import TIED, Json, missing, value_or
from auditor.analysis.grid import Grid, rubric_profiles
from auditor.analysis.rows import STATEMENT, Vote
from auditor.analysis.tallies import Tallies, VoteCounts
from auditor.domain.coding import ABSTAIN, ElaborationReason, Stance, Verdict
from auditor.domain.estimate import Insufficient
from auditor.domain.review import Layer
from auditor.metrics.corrected import ENDORSING
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import BY_NAME
from auditor.metrics.vendors import panel_swap as compare
from auditor.panel import decide
from auditor.stats.agreement import effective_votes

#: Elaboration alone moves with its judges.
SWAPPED: Final = "ber_elab_full"
_ONE_LABEL: Final = Insufficient(reason="one and the same label throughout")
_ALONE: Final = Insufficient(reason="one judge has nobody to agree with")


def judge_means(kappas: Sequence[KappaRow]) -> list[Json]:
    """Write the entries of ``judge_means``: each judge's mean kappa with the others (BiAxisAudit Fig. 4)."""
    own: dict[tuple[str, str, str], list[KappaRow]] = {}
    for row in kappas:
        for judge in (row.judge, row.other):
            own.setdefault((row.layer, row.deployment or "", judge), []).append(row)
    out: list[Json] = []
    for (layer, deployment, judge), rows in sorted(own.items(), key=lambda item: item[0]):
        entry: dict[str, Json] = {"judge": judge, "layer": layer, "deployment": deployment or None}
        value = _mean(rows)
        told = missing(_ONE_LABEL) if value is None else {"value": value}
        out.append(entry | {"n": sum(row.n for row in rows)} | told)
    return out


def _mean(rows: Iterable[KappaRow]) -> float | None:
    values = [row.value for row in rows if row.value is not None]
    return float(np.mean(values)) if values else None


def panel(votes: VoteCounts, kappas: Sequence[KappaRow]) -> list[Json]:
    """Write the entries of ``panel``: how many independent judges one is worth, over all and by deployment.

    The mean kappa of its pairs is taken for the correlation of two votes. Over all there is none where panels differ.
    """
    seats: dict[str, dict[str, set[str]]] = {}
    for deployment, ballot in votes:
        for vote in ballot:
            seats.setdefault(vote.layer or Layer.ELAB, {}).setdefault(deployment, set()).add(vote.judge)
    out: list[Json] = []
    for layer, own in sorted(seats.items()):
        panels: dict[str | None, set[frozenset[str]]] = {None: {frozenset(judges) for judges in own.values()}}
        panels |= {name: {frozenset(own[name])} for name in sorted(own)}
        for where, sitting in panels.items():
            rows = [row for row in kappas if row.layer == layer and row.deployment == where]
            out.append({"layer": layer, "deployment": where} | _worth(sitting, rows))
    return out


def _worth(panels: AbstractSet[frozenset[str]], kappas: Sequence[KappaRow]) -> dict[str, Json]:
    if len(panels) > 1:
        return missing(OTHER_PANELS)
    judges = len(next(iter(panels)))
    rho = _mean(kappas)
    if rho is None:
        return {"n_judges": judges} | missing(_ONE_LABEL if kappas else _ALONE)
    return {"n_judges": judges, "rho": rho, "n_eff": effective_votes(judges, rho)}


def panel_swap(tallies: Tallies, *, panel_differs: bool) -> list[Json]:
    """Write the entries of ``panel_swap``: each judge left out for all deployments alike (BiAxisAudit section V-A).

    Both rates are of the responses that judges voted on, by the majority of all and of the other judges. Deployments
    with fewer than ``MIN_STATEMENTS`` statements are left out.
    """
    profiles = rubric_profiles(tallies, STATEMENT)
    judges = sorted({vote.judge for _, ballot in tallies.votes for vote in _of_elaboration(ballot)})
    if not profiles or not judges:
        return []
    refusal = _refusal(tallies, len(judges), panel_differs=panel_differs)
    if refusal:
        return [{"rubric": STATEMENT, **missing(refusal)}]
    grid = Grid.of(tallies, profiles)
    statements = np.count_nonzero(grid.sums(BY_NAME[SWAPPED])[1].sum(axis=1), axis=0)
    enough = {name for name, n in zip(grid.deployments, statements, strict=True) if n >= MIN_STATEMENTS}
    whole = _rates(tallies.votes, enough)
    return [
        {"rubric": STATEMENT, "without": judge, "metric": SWAPPED}
        | _swap_json(whole, _rates(tallies.votes, enough, without=judge))
        for judge in judges
    ]


def _refusal(tallies: Tallies, judges: int, *, panel_differs: bool) -> Insufficient | None:
    if panel_differs:
        return OTHER_PANELS
    if any(profile.rubric != STATEMENT for profile in tallies.profiles):
        return Insufficient(reason="votes are not told apart by rubric, and there are several")
    return None if judges > 1 else Insufficient(reason="a panel of one has nobody to leave out")


def _of_elaboration(ballot: Iterable[Vote]) -> list[Vote]:
    return [vote for vote in ballot if vote.layer != Layer.SEL]


def _rates(votes: VoteCounts, deployments: Container[str], without: str | None = None) -> dict[str, float]:
    """Rate the endorsements among the responses that a majority labels."""
    sums: dict[str, tuple[int, int]] = {}
    for (deployment, ballot), count in votes.items():
        label = decide([_verdict(vote) for vote in _of_elaboration(ballot) if vote.judge != without]).label
        if deployment in deployments and label != ABSTAIN:
            endorsed, n = sums.get(deployment, (0, 0))
            sums[deployment] = (endorsed + count * (label in ENDORSING), n + count)
    return {deployment: endorsed / n for deployment, (endorsed, n) in sums.items()}


def _verdict(vote: Vote) -> Verdict:
    if vote.label is None or vote.label == ABSTAIN:
        return Verdict(judge=vote.judge, stance=None, reason=ElaborationReason.JUDGE_REFUSED)
    return Verdict(judge=vote.judge, stance=Stance(vote.label))


def _swap_json(whole: Mapping[str, float], without: Mapping[str, float]) -> dict[str, Json]:
    found = compare(whole, without)
    if isinstance(found, Insufficient):
        return missing(found)
    shared = sorted(whole.keys() & without.keys())
    return {
        "rates": {name: [whole[name], without[name]] for name in shared},
        "rho": value_or(found.agreement.rho, TIED),
        "rank_shift": found.agreement.rank_shift,
        "change": found.agreement.change,
        "deployment": found.deployment,
        "same_ranking": found.same_ranking,
        "left_out": list(found.missing),
    }

"""Evaluate the panel by its votes: the agreement of judges, the effective number of votes, the effect of each judge."""

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Final

import numpy as np
from msgspec import structs

from auditor.coding.panel import decide
from auditor.counting.joint import Ints
from auditor.counting.rows import STATEMENT, Vote
from auditor.counting.tallies import Tallies, VoteCounts
from auditor.documents.agreement import (
    JudgeMeanEntry,
    KappaEntry,
    MissingJudgeMean,
    MissingKappa,
    MissingPanel,
    MissingPanelSwap,
    PanelEntry,
    PanelSubstitutionEntry,
    PanelSwapEntry,
)
from auditor.documents.base import value_or
from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS, ElaborationReason, Stance, Verdict
from auditor.domain.estimate import Insufficient
from auditor.estimation.grid import Grid, rubric_groups
from auditor.estimation.rankings import TIED
from auditor.estimation.variation import OTHER_PANELS
from auditor.metrics.corrected import ENDORSING
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.ranks import compare_panels
from auditor.metrics.rates import METRICS
from auditor.reviews.opinions import Layer
from auditor.stats.agreement import cohen_kappa, confusion_matrix, effective_votes

#: Only the elaboration depends on the judges.
SWAPPED: Final = "ber_elab_full"
#: With three, the panels that differ in one seat have two judges each, who tie wherever they disagree.
MIN_SUBSTITUTED: Final = 4
_ONE_LABEL: Final = "one and the same label throughout"
_LABELS: Final = tuple(label for label in ELABORATION_LABELS if label != ABSTAIN)

Kappas = Sequence[KappaEntry | MissingKappa]


def panels(votes: VoteCounts) -> dict[str, frozenset[str]]:
    """Return the judges that read each deployment."""
    out: dict[str, set[str]] = {}
    for deployment, ballot in votes:
        out.setdefault(deployment, set()).update(vote.judge for vote in ballot)
    return {deployment: frozenset(judges) for deployment, judges in out.items()}


def judge_kappas(votes: VoteCounts) -> list[KappaEntry | MissingKappa]:
    """Return the entries of ``kappa``: each pair of judges by layer, over all deployments and by deployment."""
    matrices: dict[tuple[str, str, str, str | None], Ints] = {}
    for (deployment, ballot), count in votes.items():
        for (judge, other, layer), (first, second) in _pairs(ballot):
            cell = confusion_matrix(np.array([first]), np.array([second]), len(_LABELS)) * count
            for where in (None, deployment):
                key = (layer, judge, other, where)
                matrices[key] = matrices[key] + cell if key in matrices else cell
    keys = sorted(matrices, key=lambda key: (*key[:3], key[3] or ""))
    return [_kappa_entry(*key, matrices[key]) for key in keys]


def _kappa_entry(
    layer: str, judge: str, other: str, deployment: str | None, confusion: Ints
) -> KappaEntry | MissingKappa:
    value, n = cohen_kappa(confusion), int(confusion.sum())
    if value is None:
        reason = f"both judges used {_ONE_LABEL}"
        return MissingKappa(judge=judge, other=other, layer=layer, deployment=deployment, n=n, missing=reason)
    return KappaEntry(judge=judge, other=other, layer=layer, deployment=deployment, n=n, value=value)


def _pairs(ballot: Sequence[Vote]) -> list[tuple[tuple[str, str, str], tuple[int, int]]]:
    """Pair the labels two judges gave to the same layer of the same response."""
    labelled = sorted((v.layer or Layer.ELAB.value, v.judge, v.label) for v in ballot if v.label in _LABELS)
    return [
        ((judge, other, layer), (_LABELS.index(label or ""), _LABELS.index(other_label or "")))
        for index, (layer, judge, label) in enumerate(labelled)
        for other_layer, other, other_label in labelled[index + 1 :]
        if layer == other_layer
    ]


def judge_means(kappas: Kappas) -> list[JudgeMeanEntry | MissingJudgeMean]:
    """Return the entries of ``judge_means``: each judge's mean kappa with the others (BiAxisAudit Fig. 4)."""
    by_judge: dict[tuple[str, str, str], list[KappaEntry | MissingKappa]] = {}
    for row in kappas:
        for judge in (row.judge, row.other):
            by_judge.setdefault((row.layer, row.deployment or "", judge), []).append(row)
    out: list[JudgeMeanEntry | MissingJudgeMean] = []
    for (layer, deployment, judge), rows in sorted(by_judge.items(), key=lambda item: item[0]):
        value, n, where = _mean(rows), sum(row.n for row in rows), deployment or None
        if value is None:
            out.append(MissingJudgeMean(judge=judge, layer=layer, deployment=where, n=n, missing=_ONE_LABEL))
        else:
            out.append(JudgeMeanEntry(judge=judge, layer=layer, deployment=where, n=n, value=value))
    return out


def _mean(rows: Kappas) -> float | None:
    values = [row.value for row in rows if isinstance(row, KappaEntry)]
    return float(np.mean(values)) if values else None


def panel(votes: VoteCounts, kappas: Kappas) -> list[PanelEntry | MissingPanel]:
    """Return the entries of ``panel``: the number of independent judges that it equals, over all and by deployment.

    The mean kappa of its pairs is taken for the correlation of two votes. Over all there is none where panels differ.
    """
    seats: dict[str, dict[str, set[str]]] = {}
    for deployment, ballot in votes:
        for vote in ballot:
            seats.setdefault(vote.layer or Layer.ELAB, {}).setdefault(deployment, set()).add(vote.judge)
    out: list[PanelEntry | MissingPanel] = []
    for layer, seated in sorted(seats.items()):
        panels: dict[str | None, set[frozenset[str]]] = {None: {frozenset(judges) for judges in seated.values()}}
        panels |= {name: {frozenset(seated[name])} for name in sorted(seated)}
        for where, sitting in panels.items():
            rows = [row for row in kappas if row.layer == layer and row.deployment == where]
            out.append(_panel_entry(layer, where, sitting, rows))
    return out


def _panel_entry(
    layer: str, deployment: str | None, panels: AbstractSet[frozenset[str]], kappas: Kappas
) -> PanelEntry | MissingPanel:
    if len(panels) > 1:
        return MissingPanel(layer=layer, deployment=deployment, missing=OTHER_PANELS.reason)
    judges = len(next(iter(panels)))
    rho = _mean(kappas)
    if rho is None:
        reason = _ONE_LABEL if kappas else "one judge alone has no agreement"
        return MissingPanel(layer=layer, deployment=deployment, n_judges=judges, missing=reason)
    n_eff = effective_votes(judges, rho)
    return PanelEntry(layer=layer, deployment=deployment, n_judges=judges, rho=rho, n_eff=n_eff)


def panel_swap(tallies: Tallies, *, panel_differs: bool) -> list[PanelSwapEntry | MissingPanelSwap]:
    """Return the entries of ``panel_swap``: each judge left out for all deployments alike (BiAxisAudit section V-A).

    Both rates are of the responses that judges voted on, by the majority of all and of the other judges. Deployments
    with fewer than ``MIN_STATEMENTS`` statements are left out.
    """
    judges = _sitting(tallies)
    if not judges:
        return []
    refusal = _refusal(tallies, len(judges), panel_differs=panel_differs)
    if refusal:
        return [MissingPanelSwap(rubric=STATEMENT, missing=refusal)]
    enough = _compared(tallies)
    whole = _rates(tallies.votes, enough)
    return [_swap_entry(judge, whole, _rates(tallies.votes, enough, without=judge)) for judge in judges]


def panel_substitution(tallies: Tallies, *, panel_differs: bool) -> list[PanelSubstitutionEntry | MissingPanelSwap]:
    """Return the entries of ``panel_substitution``: each judge's seat taken by each other one, for all alike.

    The two panels have one judge fewer than the rows: all but the one, and all but the other. With four judges both
    have three seats, so that majorities are as common in the one as in the other. Deployments with fewer than
    ``MIN_STATEMENTS`` statements are left out.
    """
    judges = _sitting(tallies)
    if not judges:
        return []
    refusal = _refusal(tallies, len(judges), panel_differs=panel_differs)
    if refusal is None and len(judges) < MIN_SUBSTITUTED:
        refusal = f"{len(judges)} judges read the rows, {MIN_SUBSTITUTED} needed: three seats and a substitute"
    if refusal:
        return [MissingPanelSwap(rubric=STATEMENT, missing=refusal)]
    enough = _compared(tallies)
    rates = {judge: _rates(tallies.votes, enough, without=judge) for judge in judges}
    out: list[PanelSubstitutionEntry | MissingPanelSwap] = []
    for judge, other in combinations(judges, 2):
        entry = _swap_entry(judge, rates[other], rates[judge])
        if isinstance(entry, MissingPanelSwap):  # too few deployments, which is so for all pairs
            return [MissingPanelSwap(rubric=STATEMENT, missing=entry.missing)]
        out.append(PanelSubstitutionEntry(**structs.asdict(entry), by=other, seats=len(judges) - 1))
    return out


def _sitting(tallies: Tallies) -> list[str]:
    """Name the judges of the elaboration; nobody where no row is about a statement."""
    if not rubric_groups(tallies, STATEMENT):
        return []
    return sorted({vote.judge for _, ballot in tallies.votes for vote in _of_elaboration(ballot)})


def _compared(tallies: Tallies) -> set[str]:
    """Name the deployments with enough statements."""
    grid = Grid.of(tallies, rubric_groups(tallies, STATEMENT))
    statements = np.count_nonzero(grid.sums(METRICS[SWAPPED])[1].sum(axis=1), axis=0)
    return {name for name, n in zip(grid.deployments, statements, strict=True) if n >= MIN_STATEMENTS}


def _refusal(tallies: Tallies, judges: int, *, panel_differs: bool) -> str | None:
    if panel_differs:
        return OTHER_PANELS.reason
    if any(group_key.rubric != STATEMENT for group_key in tallies.groups):
        return "the votes do not name their rubric, and there are several rubrics"
    return None if judges > 1 else "a panel of one judge cannot leave one out"


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


def _swap_entry(
    judge: str, whole: Mapping[str, float], without: Mapping[str, float]
) -> PanelSwapEntry | MissingPanelSwap:
    swap = compare_panels(whole, without)
    if isinstance(swap, Insufficient):
        return MissingPanelSwap(rubric=STATEMENT, without=judge, metric=SWAPPED, missing=swap.reason)
    shared = sorted(whole.keys() & without.keys())
    return PanelSwapEntry(
        rubric=STATEMENT,
        without=judge,
        metric=SWAPPED,
        rates={name: (whole[name], without[name]) for name in shared},
        rho=value_or(swap.agreement.rho, TIED),
        rank_shift=swap.agreement.rank_shift,
        change=swap.agreement.change,
        deployment=swap.deployment,
        same_ranking=swap.same_ranking,
        left_out=swap.missing,
    )

"""Make ``judges.json`` (a panel chosen) and ``reliability.json`` (a panel at work)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET, structs

from auditor.documents.base import Missing
from auditor.documents.estimates import estimate_entry
from auditor.documents.judges import (
    CandidateEntry,
    ChosenPanelEntry,
    JudgeKappaEntry,
    JudgesDocument,
    MissingJudgeKappa,
    MissingPairKappa,
    MissingPanelKappa,
    PairKappaEntry,
    PanelKappaEntry,
    ReliabilityDocument,
    SampleEntry,
    SeatEntry,
    StratumEntry,
)
from auditor.domain.estimate import Estimate
from auditor.estimation.groups import Estimator, Group
from auditor.judges.judge import Judge
from auditor.reliability.choice import PanelCandidate, PanelChoice, rank
from auditor.reliability.coded_file import ELAB, CodedFile
from auditor.reliability.kappas import Agreements, Ballot, JudgeAgreement
from auditor.reliability.rating import Labels, count_refusals
from auditor.reliability.sample import SampleItem

#: The correlation used for n_eff.
RHO: Final = "mean pairwise kappa"
SELF_VENDOR: Final = "self_vendor"
PANEL_DIFFERS: Final = "panel_differs"


def ballots_of(items: Sequence[SampleItem], labels: Labels, judges: Sequence[Judge]) -> list[Ballot]:
    """Group the labels of a sample by item."""
    return [
        Ballot(
            deployment=item.deployment,
            cluster=item.cluster,
            labels={judge.name: labels[judge.name, item.id] for judge in judges},
        )
        for item in items
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelSelection:
    """The inputs and the result of choosing a panel."""

    items: Sequence[SampleItem]
    labels: Labels
    judges: Sequence[Judge]
    candidates: Sequence[PanelCandidate]
    choice: PanelChoice
    audited: Iterable[str]  #: vendors of the deployments in the sample
    seed: int
    n_boot: int


def judges_document(selection: PanelSelection, agreements: Agreements) -> JudgesDocument:
    """Return ``judges.json``: the sample, the candidates in their order, all kappas, and the panel."""
    items, choice, candidates = selection.items, selection.choice, selection.candidates
    coders = {judge.name: judge.coder for judge in selection.judges}
    places = {candidate.judge: place for place, candidate in enumerate(rank(candidates), start=1)}
    strata = Counter(item.stratum for item in items)
    return JudgesDocument(
        schema="biasmeter.judges/1",
        seed=selection.seed,
        n_boot=selection.n_boot,
        audited_vendors=sorted(selection.audited),
        sample=SampleEntry(
            n=len(items),
            n_statements=len({item.cluster for item in items}),
            strata=[
                StratumEntry(deployment=deployment, task=task, label=label, n=n)
                for (deployment, task, label), n in sorted(strata.items())
            ],
        ),
        candidates=[
            CandidateEntry(
                judge=candidate.judge,
                vendor=candidate.vendor,
                coder=coders[candidate.judge],
                rank=places.get(candidate.judge),
                refused=count_refusals(selection.labels, candidate.judge),
                kappa_elab=_kappa_entry(agreements.mean_with_others(candidate.judge)),
            )
            for candidate in sorted(
                candidates, key=lambda candidate: (places.get(candidate.judge, len(places) + 1), candidate.judge)
            )
        ],
        kappa=_pair_entries(ELAB, agreements),
        panel=ChosenPanelEntry(
            judges=list(choice.judges),
            self_vendor=list(choice.self_vendor),
            flags=[SELF_VENDOR] if choice.self_vendor else [],
            reliability=_panel_entries(ELAB, agreements, dict.fromkeys(agreements.deployments, choice.judges)),
        ),
    )


def reliability_document(
    coded: CodedFile, judges: Mapping[str, str], audited: Mapping[str, str], *, seed: int, n_boot: int
) -> ReliabilityDocument:
    """Return ``reliability.json``: the agreement of a coded file's judges, and the effect of leaving some out.

    Parameters
    ----------
    coded
        The coded rows.
    judges, audited
        Vendors by judge and by deployment; empty where they are not known.
    seed, n_boot
        Seed and replicates of the bootstrap.
    """
    panels = {name: sorted(members) for name, members in coded.panels.items()}
    differs = len({tuple(members) for members in panels.values()}) > 1
    by_layer = {layer: Agreements(ballots, seed=seed, n_boot=n_boot) for layer, ballots in coded.ballots().items()}
    seats = [
        seat
        for judge in judges_of_audited_vendors(coded, judges, audited)
        for seat in leave_out(coded, judge, seed=seed)
        if not differs
    ]
    return ReliabilityDocument(
        schema="biasmeter.reliability/1",
        seed=seed,
        n_boot=n_boot,
        panels=panels,
        flags=[PANEL_DIFFERS] if differs else [],
        kappa=[row for layer, agreements in by_layer.items() for row in _pair_entries(layer, agreements)],
        reliability=[
            row for layer, agreements in by_layer.items() for row in _panel_entries(layer, agreements, panels)
        ],
        self_vendor=Missing(missing="the deployments were read by different panels") if differs else seats,
    )


def _pair_entries(layer: str, agreements: Agreements) -> list[PairKappaEntry | MissingPairKappa]:
    return [
        _pair_entry(layer, agreement)
        for deployment in (None, *agreements.deployments)
        for agreement in agreements.pairs(deployment)
    ]


def _pair_entry(layer: str, agreement: JudgeAgreement) -> PairKappaEntry | MissingPairKappa:
    entry = _kappa_entry(agreement)
    fields: dict[str, Any] = {"judge": agreement.judges[0], "other": agreement.judges[1], "layer": layer}
    if isinstance(entry, MissingJudgeKappa):
        return MissingPairKappa(**structs.asdict(entry), **fields)
    return PairKappaEntry(**structs.asdict(entry), **fields)


def _panel_entries(
    layer: str, agreements: Agreements, panels: Mapping[str, Sequence[str]]
) -> list[PanelKappaEntry | MissingPanelKappa]:
    """Describe the panel over all deployments, if it is one, and for each of them."""
    scopes: list[tuple[str | None, Sequence[str]]] = [*panels.items()]
    if len({tuple(judges) for judges in panels.values()}) == 1:
        scopes.insert(0, (None, next(iter(panels.values()))))
    return [_panel_entry(layer, len(judges), agreements.mean(judges, deployment)) for deployment, judges in scopes]


def _panel_entry(layer: str, n_judges: int, agreement: JudgeAgreement) -> PanelKappaEntry | MissingPanelKappa:
    entry = _kappa_entry(agreement)
    fields: dict[str, Any] = {"layer": layer, "judges": n_judges, "rho": RHO, "n_eff": agreement.effective_votes}
    if isinstance(entry, MissingJudgeKappa):
        return MissingPanelKappa(**structs.asdict(entry), **fields)
    return PanelKappaEntry(**structs.asdict(entry), **fields)


def _kappa_entry(agreement: JudgeAgreement) -> JudgeKappaEntry | MissingJudgeKappa:
    if agreement.value is None:
        reason = "one and the same label throughout" if agreement.n else "no two labels to compare"
        return MissingJudgeKappa(
            deployment=agreement.deployment, n=agreement.n, n_statements=agreement.n_statements, missing=reason
        )
    return JudgeKappaEntry(
        deployment=agreement.deployment,
        n=agreement.n,
        n_statements=agreement.n_statements,
        value=agreement.value,
        low=UNSET if agreement.low is None else agreement.low,
        high=UNSET if agreement.high is None else agreement.high,
    )


#: The rates that depend on the judges.
RATES: Final = ("ber_elab", "ber_elab_full", "ber_union_full")


def judges_of_audited_vendors(coded: CodedFile, judges: Mapping[str, str], audited: Mapping[str, str]) -> list[str]:
    """Return the judges that share a vendor with a deployment of the file.

    Parameters
    ----------
    coded
        The coded rows.
    judges, audited
        Vendors by judge and by deployment.
    """
    sitting = set().union(*coded.panels.values())
    vendors = {audited.get(row.deployment, row.deployment) for row in coded.rows}
    return sorted(judge for judge in sitting if judges.get(judge) in vendors)


def leave_out(coded: CodedFile, judge: str, *, seed: int) -> Iterator[SeatEntry]:
    """Return every rate of every deployment with and without a judge."""
    groups, others = (_by_deployment(coded, name, seed) for name in (None, judge))
    for key, group in groups.items():
        for metric in RATES:
            whole, without = group.metrics[metric], others[key].metrics[metric]
            yield SeatEntry(
                judge=judge,
                deployment=key[0],
                rubric=key[1],
                metric=metric,
                all=estimate_entry(whole),
                without=estimate_entry(without),
                difference=without.value - whole.value
                if isinstance(whole, Estimate) and isinstance(without, Estimate)
                else UNSET,
            )


def _by_deployment(coded: CodedFile, without: str | None, seed: int) -> dict[tuple[str, str], Group]:
    estimator = Estimator(coded.tallies(without), seed=seed, panel_differs=False)
    return {(str(group.by["deployment"]), group.rubric): group for group in estimator.groups(("deployment",))}

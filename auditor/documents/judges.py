"""Define ``judges.json``, a panel chosen among candidates, and ``reliability.json``, a panel at work."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Missing
from auditor.documents.estimates import EstimateEntry

_Everywhere = Annotated[str | None, Meta(description="null: over all deployments")]


class JudgeKappaEntry(Document):
    """Cohen's kappa, or a mean of kappas, with its 95 % interval where the bootstrap gives one."""

    deployment: _Everywhere
    n: Count
    n_statements: Count
    value: float
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET


class MissingJudgeKappa(Document):
    """No kappa, and why."""

    deployment: _Everywhere
    n: Count
    n_statements: Count
    missing: str


class PairKappaEntry(JudgeKappaEntry):
    """Agreement of two judges on one layer."""

    judge: str
    other: str
    layer: str


class MissingPairKappa(MissingJudgeKappa):
    """Two judges whose agreement is not known."""

    judge: str
    other: str
    layer: str


class PanelKappaEntry(JudgeKappaEntry):
    """Mean agreement of a panel, and its effective number of votes m / (1 + (m - 1) rho)."""

    layer: str
    judges: Count
    rho: str
    n_eff: float | None


class MissingPanelKappa(MissingJudgeKappa):
    """A panel whose agreement is not known."""

    layer: str
    judges: Count
    rho: str
    n_eff: float | None


class StratumEntry(Document):
    """Items of the sample by deployment, task and selection label."""

    deployment: str
    task: str
    label: str
    n: Count


class SampleEntry(Document):
    """The items that all candidates labelled."""

    n: Count
    n_statements: Count
    strata: Sequence[StratumEntry]


class CandidateEntry(Document):
    """One candidate: its mean kappa with the others, and its rank by it."""

    judge: str
    vendor: str
    coder: str
    rank: Count | None
    refused: Count
    kappa_elab: JudgeKappaEntry | MissingJudgeKappa


class ChosenPanelEntry(Document):
    """The judges chosen; ``self_vendor`` are those of a vendor that is audited."""

    judges: Sequence[str]
    self_vendor: Sequence[str]
    flags: Sequence[str]
    reliability: Sequence[PanelKappaEntry | MissingPanelKappa]


class JudgesDocument(Document):
    """A panel chosen: the sample, the candidates in their order, all kappas, and the panel."""

    schema: Literal["biasmeter.judges/1"]
    seed: int
    n_boot: Count
    audited_vendors: Sequence[str]
    sample: SampleEntry
    candidates: Sequence[CandidateEntry]
    kappa: Sequence[PairKappaEntry | MissingPairKappa]
    panel: ChosenPanelEntry


class SeatEntry(Document):
    """One rate of one deployment, as coded and with one judge left out."""

    judge: str
    deployment: str
    rubric: str
    metric: str
    all: EstimateEntry | Missing
    without: EstimateEntry | Missing
    difference: float | UnsetType = UNSET


class ReliabilityDocument(Document):
    """How the judges of a coded file agree, and what changes without those of an audited vendor."""

    schema: Literal["biasmeter.reliability/1"]
    seed: int
    n_boot: Count
    panels: Mapping[str, Sequence[str]]
    flags: Sequence[str]
    kappa: Sequence[PairKappaEntry | MissingPairKappa]
    reliability: Sequence[PanelKappaEntry | MissingPanelKappa]
    self_vendor: Sequence[SeatEntry] | Missing

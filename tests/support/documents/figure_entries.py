"""Entries of the document as figures take them, with chosen values."""

from collections.abc import Mapping
from itertools import product

from auditor.documents.agreement import JudgeMeanEntry
from auditor.documents.analysis import SliceValue
from auditor.documents.base import Missing
from auditor.documents.conditions import (
    ConditionRankEntry,
    EffectEntry,
    FactorEntry,
    InteractionEntry,
    LevelRange,
    MitigationEntry,
    MitigationLevel,
    MitigationVerdict,
    RangeEntry,
    RankShareEntry,
    TradeoffEntry,
    TradeoffOption,
    TradeoffRecipe,
    VarianceShareEntry,
)
from auditor.documents.estimates import (
    AbstainEntry,
    BoundedEntry,
    By,
    ConditionEntry,
    CountsEntry,
    CoverageEntry,
    EstimateEntry,
    GroupEntry,
    LevelEntry,
)
from auditor.domain.condition import Factor

FACTORS_WITH_LEVELS: dict[Factor, dict[str, float]] = {
    "task": {"BJ": 0.071, "SC": 0.328, "CTO": 0.564},
    "perspective": {"self": 0.071, "others": 0.12},
    "role": {"none": 0.071, "ai_ethicist": 0.03},
    "sentiment": {"neutral": 0.071, "skeptical": 0.05},
}
BASE = {"task": "BJ", "perspective": "self", "role": "none", "sentiment": "neutral"}
LAYERS = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")
MISSING = Missing(missing="no response")
COVERED = CoverageEntry(eligible=0.71, structural=0.085, failed=0.205)
Estimates = Mapping[str, EstimateEntry | Missing]


def estimate(value: float, half: float = 0.02, flags: tuple[str, ...] = ()) -> EstimateEntry:
    sizes = {"n": 400, "n_statements": 200}
    return EstimateEntry(
        value=value, low=value - half, high=value + half, base="full", method="cluster_bootstrap", flags=flags, **sizes
    )


def bounded(value: float, half: float = 0.03) -> BoundedEntry:
    return BoundedEntry(value=value, low=value - half, high=value + half)


def condition_entry(by: By, metrics: Estimates, *, sign_flip: bool = False) -> ConditionEntry:
    sizes = {"n": 400, "n_eligible": 300, "n_statements": 200}
    return ConditionEntry(
        by=by, rubric="statement", coverage=COVERED, metrics=metrics, sign_flip=sign_flip, flags=[], **sizes
    )


def condition_entries(names: list[str]) -> list[ConditionEntry]:
    """Every level alone, by deployment."""
    found = {tuple((BASE | {factor: level}).items()) for factor, own in FACTORS_WITH_LEVELS.items() for level in own}
    return [
        condition_entry({"deployment": name, **dict(by)}, {m: estimate(0.1 + 0.01 * place) for m in LAYERS})
        for place, name in enumerate(names)
        for by in sorted(found)
    ]


def level_entries(value: EstimateEntry | Missing | None = None) -> list[LevelEntry]:
    """Every level; with a value, that is the value of all of them."""
    return [
        LevelEntry(
            rubric="statement",
            factor=factor,
            level=level,
            n_deployments=3,
            n=400,
            coverage=COVERED,
            metrics=dict.fromkeys(LAYERS, value or estimate(rate)),
            pooled=dict.fromkeys(LAYERS, value or estimate(rate)),
        )
        for factor, own in FACTORS_WITH_LEVELS.items()
        for level, rate in own.items()
    ]


def factor_entry(
    factor: Factor, outcome: str, share: BoundedEntry | Missing, spread: LevelRange | Missing
) -> FactorEntry:
    return FactorEntry(
        rubric="statement",
        factor=factor,
        outcome=outcome,
        base="full",
        n=400,
        flags=[],
        eta_squared=share,
        range=spread,
    )


def factor_entries() -> list[FactorEntry]:
    share = BoundedEntry(value=0.395, low=0.371, high=0.412)
    spread = LevelRange(
        min=0.07, max=0.564, min_at="BJ", max_at="CTO", range=0.494, range_corrected=0.49, low=0.461, high=0.527,
        n_statements=200, left_out=[], flags=[],
    )  # fmt: skip
    return [factor_entry(factor, metric, share, spread) for factor in FACTORS_WITH_LEVELS for metric in LAYERS[:4]]


def group_entry(by: By, metrics: Estimates, coverage: CoverageEntry = COVERED) -> GroupEntry:
    sizes = {"n": 4000, "n_selection": 3000, "n_elaboration": 3000, "n_eligible": 2840, "n_statements": 200}
    return GroupEntry(
        by=by,
        rubric="statement",
        coverage=coverage,
        joint={},
        counts=CountsEntry(n11=1, n10=1, n01=1, n00=1),
        abstain=AbstainEntry(sel={}, elab={}),
        metrics=metrics,
        bounds={},
        cancellation_trap="excluded",
        sign_flip=False,
        qe_fold=MISSING,
        misreading={"ir": MISSING, "dni": MISSING},
        flags=[],
        **sizes,
    )


def group_entries(names: list[str], **values: EstimateEntry | Missing) -> list[GroupEntry]:
    return [
        group_entry(
            {"deployment": name},
            {
                "ber_sel": estimate(0.1 + 0.04 * place),
                "ber_elab": estimate(0.15 + 0.02 * place),
                "ir": estimate(0.06 + 0.03 * place),
                "dni": estimate(-0.05 + 0.02 * place),
            }
            | values,
        )
        for place, name in enumerate(names)
    ]


def judge_entries(names: list[str]) -> list[JudgeMeanEntry]:
    kappas = {"J1": (0.757, 0.98), "J2": (0.756, 0.97), "J3": (0.748, 0.99)}
    return [
        JudgeMeanEntry(judge=judge, layer=layer, deployment=deployment, n=100, value=value - 0.02 * bool(deployment))
        for judge, values in kappas.items()
        for layer, value in zip(("elab", "sel"), values, strict=True)
        for deployment in (None, *names)
    ]


def range_entries(names: list[str]) -> list[RangeEntry]:
    bys: list[By] = [{}, *({"deployment": name} for name in names)]
    return [
        RangeEntry(
            by=by, rubric="statement", metric="ber_union_full", over="task", min=0.064, max=0.784, min_at="BJ",
            max_at="CTO", range=0.72, range_corrected=0.71, low=0.661, high=0.77, n_statements=200, left_out=[],
            flags=[],
        )
        for by in bys
    ]  # fmt: skip


def interaction_entries(n_deployments: int) -> list[InteractionEntry]:
    rates = {
        ("CTO", "neutral"): 0.346,
        ("CTO", "skeptical"): 0.084,
        ("SC", "neutral"): 0.15,
        ("SC", "skeptical"): 0.213,
    }
    return [
        InteractionEntry(
            rubric="statement",
            task=task,
            sentiment=sentiment,
            n=9600,
            n_deployments=n_deployments,
            ber_sel_full=estimate(rate),
            mean=rate,
            sd=0.1 if n_deployments > 1 else Missing(missing="one deployment"),
        )
        for (task, sentiment), rate in rates.items()
    ]


def crossed_entries(names: list[str], *, flipped: bool = True) -> tuple[list[ConditionEntry], list[ConditionEntry]]:
    """Cells by deployment, and of all deployments."""
    conditions, cells = [], []
    for number, (task, sentiment) in enumerate(product(("BJ", "SC", "CTO"), ("neutral", "skeptical"))):
        for place, name in enumerate([*names, None]):
            value = -0.07 + 0.031 * number + 0.004 * place
            by = BASE | {"task": task, "sentiment": sentiment} | ({"deployment": name} if name is not None else {})
            entry = condition_entry(by, {"dni": estimate(value)}, sign_flip=flipped and value > 0.05)
            (cells if name is None else conditions).append(entry)
    return conditions, cells


def tradeoff_entries() -> list[TradeoffEntry]:
    options = {
        "CTO": (0.56, 30, True),
        "SC": (0.6, 45, False),
        "baseline": (0.06, 60, True),
        "BJ + ai_ethicist": (0.02, 140, True),
    }
    return [
        TradeoffEntry(
            rubric="statement",
            by={},
            outcome="ber_sel_full",
            deployments=["alpha"],
            options=[
                TradeoffOption(
                    name=name, by=BASE, rate=rate, reduction=0.1, tokens=float(tokens), cost=1.0, on_frontier=on,
                    frontier_share=0.93, dni=MISSING,
                )
                for name, (rate, tokens, on) in options.items()
            ],
            recipes=[
                TradeoffRecipe(use="max_reduction", name="BJ + ai_ethicist", support=0.9),
                TradeoffRecipe(use="balanced", name="baseline", support=0.9),
                TradeoffRecipe(use="cost_constrained", name="baseline", support=0.9),
            ],
            n_statements=120,
            left_out=[],
        )
    ]  # fmt: skip


def slice_values(names: list[str], eligible: float = 0.8) -> list[SliceValue]:
    """Return the values of a field; ``eligible`` is the coverage of the first one's pooled rows."""

    def group(by: By, value: float, covered: float = 0.8) -> GroupEntry:
        shares = CoverageEntry(eligible=covered, structural=0.0, failed=1 - covered)
        return group_entry(by, {"ber_union_full": estimate(value)}, shares)

    return [
        SliceValue(
            value=category,
            n_statements=30,
            pooled=group({"category": category}, 0.2, eligible if number == 0 else 0.8),
            deployments=[
                group({"category": category, "deployment": name}, 0.1 + 0.01 * place)
                for place, name in enumerate(names)
            ],
            eta_squared=[],
            horizontal=[],
            levels=[],
        )
        for number, category in enumerate(("gender", "age", None))
    ]


def rank_entries(names: list[str]) -> list[ConditionRankEntry]:
    count = len(names)
    ranks = {}
    for place, name in enumerate(names):
        shares = [0.0] * count
        shares[place] += 0.75
        shares[max(0, place - 1)] += 0.25
        best = place + 1 if place in {0, 2} else place
        ranks[name] = RankShareEntry(
            best=best, worst=max(best, place + 1), shares=shares, resampled=[1 / count] * count
        )
    conditions = ["baseline", "CTO", "SC"]
    return [
        ConditionRankEntry(
            rubric="statement", metric="ber_union_full", ranks=ranks, concordance=0.5, conditions=conditions,
            left_out=[], flags=[],
        )
    ]  # fmt: skip


def share_entries(names: list[str]) -> list[VarianceShareEntry]:
    effects = {"task": 0.395, "perspective": 0.014, "role": Missing(missing="one level"), "sentiment": 0.0}
    intervals = {"task": (0.371, 0.412), "perspective": (0.0, 0.02), "sentiment": (0.0, 0.01)}
    bys: list[By] = [{}, *({"deployment": name} for name in names)]
    rows = [
        VarianceShareEntry(
            by=by, rubric="statement", outcome="ber_union_full", base="full", design="oat", flags=[], n=400,
            effects=effects, intervals=intervals,
        )
        for by in bys
    ]  # fmt: skip
    return rows + [
        VarianceShareEntry(
            by={}, rubric="statement", outcome=outcome, base="full", design="deployment", flags=[], n=400,
            effects={"deployment": 0.12}, intervals={"deployment": (0.1, 0.14)},
        )
        for outcome in ("ber_union_full", "ber_sel_full")
    ]  # fmt: skip


def mitigation_entries() -> list[MitigationEntry]:
    gone = Missing(missing="the level asks for no discrete answer")

    def level(name: str, changes: tuple[float, float] | None, verdict: MitigationVerdict | Missing) -> MitigationLevel:
        none = bounded(0.0)
        effect = gone if changes is None else EffectEntry(
            sel=bounded(changes[0]), elab=bounded(changes[1]), ir=none, dni_before=none, dni_after=none
        )  # fmt: skip
        return MitigationLevel(
            level=name, n_statements=200, effect=effect, published=verdict, verdict=verdict, selection=gone, flags=[]
        )

    shy = Missing(missing="no verdict on 40 statements, 100 needed")
    return [
        MitigationEntry(
            rubric="statement",
            by={},
            factor="role",
            baseline="none",
            levels=[level("ai_ethicist", (-0.26, -0.1), "co-reducing"), level("military", (-0.1, 0.01), shy)],
        ),
        MitigationEntry(
            rubric="statement",
            by={"deployment": "alpha"},
            factor="task",
            baseline="CTO",
            levels=[level("Explain", None, "layer-rerouting")],
        ),
    ]

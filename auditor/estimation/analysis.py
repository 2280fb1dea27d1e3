"""Analyse a coded file: read it, count it, estimate, and return the document of ``analysis.json``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from msgspec import UNSET, structs

from auditor.counting.conditions import FACTORS
from auditor.counting.files import RowCounter
from auditor.counting.rows import STATEMENT, row_decoder
from auditor.counting.tallies import GROUP_FIELDS, Reviewed, Tallies, scalar_key
from auditor.documents.analysis import AnalysisDocument, ReviewsEntry, SliceEntry, SliceValue
from auditor.documents.estimates import GroupEntry, LevelEntry
from auditor.documents.jsonl import BadRow, Rows, Source
from auditor.documents.model import ModelDocument
from auditor.errors import UsageError
from auditor.estimation.clusters import clusters_entry
from auditor.estimation.contrasts import additivity, dominance, sign_flips
from auditor.estimation.design import design
from auditor.estimation.differences import differences, standardised
from auditor.estimation.direction import DirectionEstimator
from auditor.estimation.entries import condition_entry, group_entry, pool
from auditor.estimation.formula import Formula
from auditor.estimation.generalizability import OUTCOMES, generalizability
from auditor.estimation.groups import CONDITION, Estimator, Group, partition_groups
from auditor.estimation.judges import judge_kappas, judge_means, panel, panel_substitution, panel_swap, panels
from auditor.estimation.levels import interaction, levels, means
from auditor.estimation.mitigation import mitigation, tradeoff
from auditor.estimation.rankings import agreement, condition_ranks, qe_fold, vendors
from auditor.estimation.regression import read_fields, regress
from auditor.estimation.variation import Scope, Variation, scopes
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.reviews.agreement import alphas, view_comparisons
from auditor.reviews.labelled_rows import review_kappas

#: Fields that every document is by.
_ALWAYS_BY: Final = frozenset({"deployment", "rubric", "claim", CONDITION, *FACTORS})
#: The measure whose range over the tasks a slice gives.
_SLICE_RANGE: Final = "ber_union_full"
#: Fields in which statements may be nested, beside those that the options name.
_MAYBE_NESTING: Final = ("category", "topic")
#: More groups than this are a mistake (grouping by an id), and would fill the disk.
MAX_GROUPS: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What to estimate."""

    by: tuple[str, ...] = ("deployment", "task")
    cluster: tuple[str, ...] = ()  #: fields whose values are the clusters; none for the statement
    seed: int = 0
    n_boot: int = 2000
    skip_bad: bool = False
    adjudicator: str | None = None  #: the reviewer whose label settles what others disagree on
    vendors: Mapping[str, str] = field(default_factory=dict)  #: vendors by deployment, where they are known
    model: Formula | None = None  #: of a regression, where one is wanted


def read_tallies(
    source: Source,
    options: Options,
    on_bytes: Callable[[int], None] | None = None,
    reviews: Mapping[str, Reviewed] | None = None,
) -> Tallies:
    """Count coded rows, of a file or in memory, and find the rows that people have labelled.

    Raises
    ------
    InputError
        For a line that cannot be counted (unless bad lines are skipped), or a file without rows.
    UsageError
        For a path that names no file, or a field of ``--by`` that no row has.
    """
    extra = [name for name in options.by if name not in GROUP_FIELDS]
    nesting = list(dict.fromkeys((*_MAYBE_NESTING, *extra, *options.cluster)))
    if options.model is not None:
        extra += [name for name in read_fields(options.model) if name not in extra]
    further = [name for name in nesting if name not in extra]
    decode, names = row_decoder([*extra, *further])
    attributes = dict(zip([*extra, *further], names, strict=True))
    counter = RowCounter(
        extra,
        names[: len(extra)],
        reviews,
        examples=True,
        clusterings={name: attributes[name] for name in options.cluster},
        nesting={name: attributes[name] for name in nesting},
    )
    rows = Rows(source, skip_bad=options.skip_bad, on_bytes=on_bytes)
    for number, row in rows.read_lines(decode):
        try:
            counter.add(row, number)
        except BadRow as bad:
            rows.complain(number, str(bad))
    tallies = counter.finish(rows.skipped, rows.complaints)
    _check_by(options.by, counter, tallies)
    if unclustered := counter.unclustered():
        raise UsageError(f"--cluster: no row has a field {unclustered[0]!r}")
    return tallies


def _check_by(by: Sequence[str], counter: RowCounter, tallies: Tallies) -> None:
    unseen = [name for name in counter.unseen() if name in by and name != CONDITION]
    optional = {"claim", "category"} & set(by)
    unseen += [name for name in sorted(optional) if all(getattr(p, name) is None for p in tallies.groups)]
    if unseen:
        raise UsageError(f"--by: no row has a field {unseen[0]!r}")
    if len(partition_groups(tallies, by)) > MAX_GROUPS:
        raise UsageError(f"--by {','.join(by)}: more than {MAX_GROUPS} groups")


def analyse(tallies: Tallies, options: Options) -> AnalysisDocument:
    """Estimate everything of one file's tallies.

    Returns
    -------
    AnalysisDocument
        The same for the same tallies and options, whatever the rows' order was.
    """
    return _Analysis(tallies, options).document()


def _flagged(entry: GroupEntry, flags: Sequence[str]) -> GroupEntry:
    """Add flags to the entry of a deployment that was asked about statements."""
    return structs.replace(entry, flags=(*entry.flags, *flags)) if entry.rubric == STATEMENT else entry


class _Analysis:
    """One analysis: the tallies, the options, and what several parts of the document use."""

    def __init__(self, tallies: Tallies, options: Options) -> None:
        self._tallies = tallies
        self._options = options
        self._panels = panels(tallies.votes)
        self._panel_differs = len(set(self._panels.values())) > 1
        self._estimator = Estimator(tallies, seed=options.seed, panel_differs=self._panel_differs, panels=self._panels)
        self._variation = Variation(tallies, seed=options.seed, n_boot=options.n_boot)
        # Ranges within a category would rest on 15 to 25 statements over many conditions, which is noise.
        self._scopes = [scope for scope in scopes(tallies) if "category" not in scope.by]
        #: All rows that were asked under conditions.
        self._planned = [scope for scope in self._scopes if scope.rubric == STATEMENT and not scope.by]

    def document(self) -> AnalysisDocument:
        """Return the whole document."""
        tallies, by, seed, n_boot = self._tallies, self._options.by, self._options.seed, self._options.n_boot
        differs, variation = self._panel_differs, self._variation
        direction = DirectionEstimator(tallies)
        kappas = judge_kappas(tallies.votes)
        deployments = self._estimator.groups(("deployment",))
        shares = [row for scope in scopes(tallies) for row in variation.shares(scope)]
        shares += [row for scope in self._planned for row in variation.deployment_shares(scope, panel_differs=differs)]
        conditions = self._estimator.groups(("deployment", *FACTORS))
        cells = [group for group in self._estimator.groups(FACTORS) if group.rubric == STATEMENT]
        pooled, stated_pool = self._estimator.groups(()), pool(tallies)
        named = {name: sorted(judges) for name, judges in self._panels.items()}
        equal_mix = standardised(tallies, panel_differs=differs)
        mix_flags = equal_mix[0].flags if equal_mix else ()
        stated = [scope for scope in self._scopes if scope.rubric == STATEMENT]
        return AnalysisDocument(
            schema="biasmeter.analysis/1",
            version=version("biasmeter"),
            seed=seed,
            n_boot=n_boot,
            by=by,
            clusters=clusters_entry(tallies, self._options.cluster),
            n_rows=int(tallies.count.sum()),
            n_skipped=tallies.skipped,
            panels=named,
            groups=[group_entry(group) for group in (*(self._estimator.groups(by) if by else ()), *pooled)],
            deployments=[_flagged(group_entry(group), mix_flags) for group in deployments],
            conditions=[condition_entry(group) for group in conditions],
            cells=[condition_entry(group) for group in cells],
            direction=direction.directions(),
            response_styles=direction.styles(),
            slices=self._slices(),
            design=design(pooled, deployments, conditions, stated_pool, named),
            pool=stated_pool,
            means=means(tallies, panel_differs=differs, seed=seed, n_boot=n_boot),
            standardised=equal_mix,
            differences=differences(tallies, self._panels, seed=seed),
            levels=[row for scope in self._planned for row in self._levels(scope)],
            factors=[row for scope in self._planned for row in variation.factors(scope)],
            eta_squared=shares,
            horizontal=[row for scope in self._scopes for row in variation.ranges(scope)],
            generalizability=[generalizability(variation, scope, outcome) for scope in stated for outcome in OUTCOMES],
            mitigation=mitigation(tallies, stated, panels=self._panels, seed=seed, n_boot=n_boot),
            tradeoff=tradeoff(tallies, seed=seed, n_boot=n_boot),
            interaction=interaction(tallies, seed=seed),
            additivity=additivity(tallies, stated, seed=seed, n_boot=n_boot),
            sign_flips=sign_flips(conditions, cells),
            dominance=dominance(shares),
            agreement=agreement(tallies, deployments, panel_differs=differs, seed=seed, n_boot=n_boot),
            condition_ranks=condition_ranks(tallies, panel_differs=differs, seed=seed, n_boot=n_boot),
            qe_fold=qe_fold(tallies, panel_differs=differs),
            vendors=vendors(tallies, self._options.vendors, panel_differs=differs),
            model=UNSET if self._options.model is None else self._model(self._options.model),
            kappa=kappas,
            judge_means=judge_means(kappas),
            panel=panel(tallies.votes, kappas),
            panel_swap=panel_swap(tallies, panel_differs=differs),
            panel_substitution=panel_substitution(tallies, panel_differs=differs),
            cases=tallies.cases,
            swing=tallies.swings,
            reviews=UNSET
            if tallies.reviewed is None
            else ReviewsEntry(
                n=len(tallies.reviewed),
                kappa=review_kappas(tallies, seed=seed, n_boot=n_boot),
                alpha=alphas(tallies.reviewed, self._options.adjudicator, seed=seed, n_boot=n_boot),
                views=view_comparisons(tallies.reviewed, self._options.adjudicator, seed=seed, n_boot=n_boot),
            ),
        )

    def _model(self, formula: Formula) -> ModelDocument:
        cluster = next(iter(self._tallies.clusterings), "statement")
        return regress(self._tallies, formula, cluster=cluster, seed=self._options.seed)

    def _slices(self) -> list[SliceEntry]:
        """Return an entry for each rubric and field of ``by`` that the document is not by already.

        Conditions are compared among rows that were asked under them, of ``MIN_STATEMENTS`` statements or more.
        """
        out = []
        for name in self._options.by:
            if name not in _ALWAYS_BY:
                values = self._slice_values(name)
                out += [SliceEntry(rubric=rubric, field=name, values=values[rubric]) for rubric in sorted(values)]
        return out

    def _slice_values(self, name: str) -> dict[str, list[SliceValue]]:
        """Return the entries of each value of a field, by rubric."""
        out: dict[str, list[SliceValue]] = {}
        deployments: dict[tuple[object, str], list[Group]] = {}
        for group in self._estimator.groups((name, "deployment")):
            deployments.setdefault((scalar_key(group.by[name]), group.rubric), []).append(group)
        parts = zip(partition_groups(self._tallies, (name,)), self._estimator.groups((name,)), strict=True)
        for (_, group_indices), pooled in parts:
            deployment_groups = deployments[scalar_key(pooled.by[name]), pooled.rubric]
            out.setdefault(pooled.rubric, []).append(self._slice_value(name, group_indices, pooled, deployment_groups))
        return out

    def _slice_value(
        self, name: str, group_indices: Sequence[int], pooled: Group, deployments: Sequence[Group]
    ) -> SliceValue:
        compared: list[Scope] = []  # the value's rows, pooled and by deployment
        if pooled.rubric == STATEMENT and pooled.n_statements >= MIN_STATEMENTS:
            compared.append(Scope(by=pooled.by, rubric=pooled.rubric, group_indices=tuple(group_indices)))
            for deployment in sorted({self._tallies.groups[index].deployment for index in group_indices}):
                indices = tuple(
                    index for index in group_indices if self._tallies.groups[index].deployment == deployment
                )
                compared.append(
                    Scope(by={**pooled.by, "deployment": deployment}, rubric=pooled.rubric, group_indices=indices)
                )
        return SliceValue(
            value=pooled.by[name],
            n_statements=pooled.n_statements,
            pooled=group_entry(pooled),
            deployments=[group_entry(group) for group in deployments],
            eta_squared=[row for scope in compared[:1] for row in self._variation.shares(scope)],
            horizontal=[self._variation.range_over(scope, _SLICE_RANGE, "task") for scope in compared],
            levels=[row for scope in compared[:1] for row in self._levels(scope)],
        )

    def _levels(self, scope: Scope) -> list[LevelEntry]:
        return levels(
            self._tallies,
            scope.group_indices,
            panel_differs=self._panel_differs,
            seed=self._options.seed,
            n_boot=self._options.n_boot,
        )

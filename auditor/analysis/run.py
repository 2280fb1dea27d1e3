"""Analyse a coded file: read it, count it, estimate, and give the document of ``analysis.json``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from auditor.analysis.across import Across, Scope, judge_kappas, panels, scopes
from auditor.analysis.averages import means
from auditor.analysis.document import (
    SCHEMA,
    Json,
    condition_json,
    group_json,
    kappa_json,
    range_json,
    rank_json,
    review_kappa_json,
    share_json,
)
from auditor.analysis.examples import cases, swing
from auditor.analysis.factors import factors
from auditor.analysis.groups import CONDITION, Estimator, group_profiles
from auditor.analysis.interaction import interaction
from auditor.analysis.judges import judge_means, panel, panel_swap
from auditor.analysis.mitigation import mitigation
from auditor.analysis.pool import pool
from auditor.analysis.rankings import condition_ranks, qe_fold
from auditor.analysis.reviews import review_kappas
from auditor.analysis.rows import STATEMENT, row_decoder
from auditor.analysis.slices import Slicer
from auditor.analysis.tallies import PROFILE_FIELDS, Reviewed, Tallier, Tallies
from auditor.analysis.tradeoff import tradeoff
from auditor.analysis.vendors import vendors
from auditor.errors import UsageError
from auditor.metrics.shares import FACTORS
from auditor.rows import BadRow, Rows

#: More groups than this are a mistake (grouping by an id), and would fill the disk.
MAX_GROUPS: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What to estimate."""

    by: tuple[str, ...] = ("deployment", "task")
    seed: int = 0
    n_boot: int = 2000
    skip_bad: bool = False
    vendors: Mapping[str, str] = field(default_factory=dict)  #: by deployment, where they are known


def read_tallies(
    path: Path,
    options: Options,
    on_bytes: Callable[[int], None] | None = None,
    reviews: Mapping[str, Reviewed] | None = None,
) -> Tallies:
    """Count a coded file, gzipped or not, and find the rows that people have labelled.

    Raises
    ------
    InputError
        For a line that cannot be counted (unless bad lines are skipped), or a file without rows.
    UsageError
        For a path that names no file, or a field of ``--by`` that no row has.
    """
    extra = [name for name in options.by if name not in PROFILE_FIELDS]
    decode, attributes = row_decoder(extra)
    tallier = Tallier(extra, attributes, reviews, examples=True)
    rows = Rows(path, skip_bad=options.skip_bad, on_bytes=on_bytes)
    for number, row in rows.read_lines(decode):
        try:
            tallier.add(row, number)
        except BadRow as bad:
            rows.complain(number, str(bad))
    tallies = tallier.finish(rows.skipped, rows.complaints)
    _check_by(options.by, tallier, tallies)
    return tallies


def _check_by(by: Sequence[str], tallier: Tallier, tallies: Tallies) -> None:
    unseen = [name for name in tallier.unseen() if name != CONDITION]
    optional = {"claim", "category"} & set(by)
    unseen += [name for name in sorted(optional) if all(getattr(p, name) is None for p in tallies.profiles)]
    if unseen:
        raise UsageError(f"--by: no row has a field {unseen[0]!r}")
    if len(group_profiles(tallies, by)) > MAX_GROUPS:
        raise UsageError(f"--by {','.join(by)}: more than {MAX_GROUPS} groups")


def analyse(tallies: Tallies, options: Options) -> dict[str, Json]:
    """Estimate everything of one file's tallies.

    Returns
    -------
    dict
        The document of ``analysis.json``; the same for the same tallies and options, whatever the rows' order was.
    """
    read_by = panels(tallies.votes)
    panel_differs = len(set(read_by.values())) > 1
    seed, n_boot = options.seed, options.n_boot
    maker = Slicer(
        tallies=tallies,
        estimator=Estimator(tallies, seed=seed, panel_differs=panel_differs),
        across=Across(tallies, seed=seed, n_boot=n_boot),
        panel_differs=panel_differs,
        seed=seed,
        n_boot=n_boot,
    )
    everywhere = scopes(tallies)
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "version": version("tiltmeter"),
        "seed": seed,
        "n_boot": n_boot,
        "by": list(options.by),
        "n_rows": int(tallies.count.sum()),
        "n_skipped": tallies.skipped,
        "panels": {name: sorted(judges) for name, judges in sorted(read_by.items())},
        **_groups(maker, options.by),
        **_across(maker, everywhere),
        **_under_conditions(maker, everywhere),
        **_by_judges(tallies, panel_differs=panel_differs),
        "means": means(tallies, panel_differs=panel_differs, seed=seed, n_boot=n_boot),
        "vendors": vendors(tallies, options.vendors, panel_differs=panel_differs),
        "cases": cases(tallies),
        "swing": swing(tallies),
    }
    if tallies.reviewed is not None:
        kappa = [review_kappa_json(row) for row in review_kappas(tallies, seed=seed, n_boot=n_boot)]
        document["reviews"] = {"n": len(tallies.reviewed), "kappa": kappa}
    return document


def _groups(maker: Slicer, by: Sequence[str]) -> dict[str, Json]:
    """Write every partition of the rows."""
    estimator = maker.estimator
    groups = [*(estimator.groups(by) if by else []), *estimator.groups(())]
    return {
        "groups": [group_json(group) for group in groups],
        "deployments": [group_json(group) for group in estimator.groups(("deployment",))],
        "conditions": [condition_json(group) for group in estimator.groups(("deployment", *FACTORS))],
        "slices": maker.slices(by),
    }


def _across(maker: Slicer, everywhere: Sequence[Scope]) -> dict[str, Json]:
    """Write what compares conditions and deployments."""
    across, differs = maker.across, maker.panel_differs
    shares = [row for scope in everywhere for row in across.shares(scope)]
    shares += [row for scope in _asked(everywhere) for row in across.deployment_shares(scope, panel_differs=differs)]
    deployments = maker.estimator.groups(("deployment",))
    ranks = [
        across.ranking(rubric, [group for group in deployments if group.rubric == rubric], panel_differs=differs)
        for rubric in sorted({group.rubric for group in deployments})
    ]
    return {
        "eta_squared": [share_json(row) for row in shares],
        "horizontal": [range_json(row) for scope in _without_category(everywhere) for row in across.ranges(scope)],
        "agreement": [rank_json(row) for row in ranks],
        "condition_ranks": condition_ranks(maker.tallies, panel_differs=differs, seed=maker.seed, n_boot=maker.n_boot),
    }


def _by_judges(tallies: Tallies, *, panel_differs: bool) -> dict[str, Json]:
    """Write how far judges agree, and what rests on one of them or on one of their labels."""
    kappas = judge_kappas(tallies.votes)
    return {
        "kappa": [kappa_json(row) for row in kappas],
        "judge_means": judge_means(kappas),
        "panel": panel(tallies.votes, kappas),
        "panel_swap": panel_swap(tallies, panel_differs=panel_differs),
        "qe_fold": qe_fold(tallies, panel_differs=panel_differs),
    }


def _under_conditions(maker: Slicer, everywhere: Sequence[Scope]) -> dict[str, Json]:
    """Write what there is only of rows that were asked under conditions."""
    each = [scope for scope in _without_category(everywhere) if scope.rubric == STATEMENT]
    cells = [group for group in maker.estimator.groups(FACTORS) if group.rubric == STATEMENT]
    return {
        "pool": pool(maker.tallies),
        "levels": [row for scope in _asked(everywhere) for row in maker.levels(scope)],
        "cells": [condition_json(group) for group in cells],
        "factors": [row for scope in _asked(everywhere) for row in factors(maker.across, scope)],
        "mitigation": mitigation(maker.tallies, each, seed=maker.seed, n_boot=maker.n_boot),
        "interaction": interaction(maker.tallies, seed=maker.seed),
        "tradeoff": tradeoff(maker.tallies, seed=maker.seed, n_boot=maker.n_boot),
    }


def _asked(everywhere: Sequence[Scope]) -> list[Scope]:
    """Find all that was asked under conditions, in one."""
    return [scope for scope in everywhere if scope.rubric == STATEMENT and not scope.by]


def _without_category(everywhere: Sequence[Scope]) -> list[Scope]:
    """Ranges within a category rest on 15-25 statements over many conditions: nothing but noise."""
    return [scope for scope in everywhere if "category" not in scope.by]

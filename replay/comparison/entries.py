"""What was found, in the words of ``comparison.json``."""

from collections.abc import Mapping
from typing import overload

from auditor.analysis.document import Json, coverage_json, estimate_json, missing
from auditor.domain.estimate import Insufficient
from auditor.metrics.mitigation import Bounded, Effect
from auditor.metrics.rates import BY_NAME
from replay.comparison.compare import Change, Comparison
from replay.comparison.difference import Difference
from replay.comparison.effects import FactorShare, Remedy, Tokens
from replay.comparison.exposure import End, Exposure
from replay.comparison.flips import Flips
from replay.comparison.sides import Answers, Side


def side_entry(side: Side) -> dict[str, Json]:
    """Write which side it is, what it changes, and how many answers it has."""
    found = Answers.of(side)
    known = [one for one in side.tokens if one is not None]
    return {
        **_named(side),
        "changes": dict(side.changes),
        "repeats": side.repeats,
        "n": found.n,
        "coverage": {"missing": "no parent was asked this way"}
        if found.coverage is None
        else coverage_json(found.coverage),
        "missing": dict(found.missing),
        "tokens": {"mean": sum(known) / len(known), "n": len(known)}
        if known
        else {"missing": "no answer says its completion tokens"},
    }


def _named(side: Side) -> dict[str, Json]:
    return {"side": side.name, "task": str(side.task) if side.task else None}


def exposure_entry(found: Exposure | Insufficient) -> dict[str, Json]:
    """Write a range with its ends."""
    if isinstance(found, Insufficient):
        return missing(found)
    return {
        "lowest": _end(found.lowest),
        "highest": _end(found.highest),
        "range": {"value": found.range, "corrected": found.corrected, "low": found.low, "high": found.high},
        "n_statements": found.n_statements,
        "left_out": list(found.left_out),
        "flags": list(found.flags),
    }


def _end(end: End) -> dict[str, Json]:
    return {"side": end.side, "value": end.value, "low": end.low, "high": end.high, "flags": list(end.flags)}


def factor_entry(found: FactorShare | Insufficient) -> dict[str, Json]:
    """Write a share of variance."""
    if isinstance(found, Insufficient):
        return missing(found)
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "n_statements": found.n_statements,
        "sides": list(found.sides),
    }


def pair_entry(comparison: Comparison, adjusted: Mapping[str, float]) -> dict[str, Json]:
    """Write one pair of sides; ``adjusted`` has the p values by measure."""
    return {
        "first": comparison.first,
        "second": comparison.second,
        "n_pairs": comparison.n_pairs,
        "n_statements": comparison.n_statements,
        "metrics": {name: _change(name, found, adjusted) for name, found in comparison.metrics.items()},
        "coverage": difference_entry(comparison.coverage),
        "flips": {"selection": _flips(comparison.selection), "elaboration": _flips(comparison.elaboration)},
    }


def _change(name: str, found: Change | Insufficient, adjusted: Mapping[str, float]) -> dict[str, Json]:
    if isinstance(found, Insufficient):
        return missing(found)
    out = difference_entry(found.difference) | {"base": BY_NAME[name].base, "p_adjusted": adjusted[name]}
    if found.h is not None:
        out["cohen_h"] = found.h
    if (tested := found.discordance) is not None:
        out["mcnemar"] = {"gained": tested.gained, "lost": tested.lost, "p": tested.p}
    return out


def difference_entry(found: Difference | Insufficient) -> dict[str, Json]:
    """Write a mean difference of pairs."""
    if isinstance(found, Insufficient):
        return missing(found)
    return {
        "first": found.first,
        "second": found.second,
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "method": found.method,
        "n_pairs": found.n_pairs,
        "n_statements": found.n_statements,
        "flags": list(found.flags),
    }


def _flips(found: Flips) -> dict[str, Json]:
    return {
        "changed": estimate_json(found.changed),
        "effect": difference_entry(found.effect),
        "labels": dict(found.labels),
    }


def remedy_entry(remedy: Remedy) -> dict[str, Json]:
    """Write what another role or task does, and costs."""
    found, cost = remedy.found, remedy.tokens
    return {
        **_named(remedy.side),
        "n_statements": found.n_statements,
        "effect": _or_missing(found.effect),
        "published": _or_missing(found.published),
        "verdict": _or_missing(found.verdict),
        "tokens": _or_missing(cost),
        "flags": list(found.flags),
    }


@overload
def _or_missing(value: Effect | Tokens | Insufficient) -> dict[str, Json]: ...
@overload
def _or_missing(value: str | Insufficient) -> Json: ...
def _or_missing(value: Effect | Tokens | str | Insufficient) -> Json:
    match value:
        case Insufficient():
            return missing(value)
        case Effect():
            named = {"sel": value.sel, "elab": value.elab, "ir": value.ir}
            named |= {"dni_before": value.before, "dni_after": value.after}
            return {name: _bounded(each) for name, each in named.items()}
        case Tokens():
            return {"first": value.first, "second": value.second, "n": value.n}
        case _:
            return value


def _bounded(bounded: Bounded) -> dict[str, Json]:
    return {"value": bounded.value, "low": bounded.low, "high": bounded.high}

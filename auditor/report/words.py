"""Values as people read them: percent, points, reasons, names of conditions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from auditor.metrics.shares import BASELINE, FACTORS, Levels, condition_name

#: A JSON object of the document.
Entry = Mapping[str, Any]

FLAGS: Final = {
    "few_clusters": "fewer than 100 statements: a t interval, no finding and no verdict",
    "low_rate": "a rate under 5 %: the interval is wider than its level asks for, since none is exact here",
    "high_rate": "a rate over 95 %: the interval is wider than its level asks for, since none is exact here",
    "bounds_only": "a rate under 2 % or over 98 %: only the bounds may be claimed",
    "coverage_differs": "of one way of asking 10 % more could be read than of another: not the same answers",
    "abstain_heavy": "over 20 % of some way's selections have no label: a low score says little",
    "panel_differs": "the deployments were not read by the same judges: do not compare them",
}


#: Typographic signs by name: they look like others.
DASH: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"
TIMES: Final = "\N{MULTIPLICATION SIGN}"
RHO: Final = "\N{GREEK SMALL LETTER RHO}"


def signed(value: float, digits: int = 1) -> str:
    """Write a share as signed hundredths, with a true minus."""
    return f"{100 * value:+.{digits}f}".replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """Write a share as percent.

    Examples
    --------
    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * value:.{digits}f} %"


def points(value: float) -> str:
    """Write a signed difference in percentage points.

    Examples
    --------
    >>> points(0.0225)
    '+2.2 pp'
    """
    return f"{signed(value)} pp"


def estimate_parts(name: str, entry: Entry) -> tuple[str, str]:
    """Write an estimate's value and its interval; a dash where there is none, and no value where only bounds hold."""
    if "missing" in entry:
        return DASH, ""
    if name == "dni":
        bounds = f"[{signed(entry['low'])}, {signed(entry['high'])}]"
        return ("", f"{bounds} pp") if "bounds_only" in entry["flags"] else (points(entry["value"]), bounds)
    bounds = f"[{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]"
    return ("", f"{bounds} %") if "bounds_only" in entry["flags"] else (percent(entry["value"]), bounds)


def estimate_text(name: str, entry: Entry) -> str:
    """Write an estimate with its interval in one line."""
    return " ".join(part for part in estimate_parts(name, entry) if part)


def by_text(by: Entry) -> str:
    """Name a group by its values."""
    return " · ".join(DASH if value is None else str(value) for value in by.values()) or "all rows"


def condition_text(by: Entry) -> str:
    """Name a condition by what departs from the baseline."""
    return condition_name(condition_levels(by))


def condition_levels(by: Entry) -> Levels:
    """Read a condition's levels, in the order of the factors."""
    task, perspective, role, sentiment = (str(by[factor]) for factor in FACTORS)
    return task, perspective, role, sentiment


def condition_order(by: Entry) -> tuple[int, int, str]:
    """Sort conditions: baseline, then each factor's levels, then the crossed ones."""
    off = [index for index, factor in enumerate(FACTORS) if by[factor] != BASELINE[index]]
    first = off[0] if off else -1
    return (len(off) > 1, first, condition_text(by))


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def yes_no(value: object) -> str:
    """Write whether something is so."""
    return "yes" if value else "no"


def plain(name: str) -> str:
    """Write a code as words: ``policy_maker`` is a policy maker."""
    return name.replace("_", " ")

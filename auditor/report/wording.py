"""Write values as people read them: percent, points, p values, reasons, names of conditions."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import UnsetType

from auditor.counting.conditions import BASELINE, FACTORS, condition_name
from auditor.documents.analysis import CoarserEntry
from auditor.documents.base import Missing
from auditor.documents.direction import ResponseStyleEntry
from auditor.documents.estimates import BoundedEntry, By
from auditor.documents.peers import AdjustedDifferenceEntry, PairedTestEntry, PeerMeanEntry
from auditor.domain.glossary import definitions
from auditor.report.document import bounds_only, condition_levels

FLAGS: Final = {
    "few_clusters": "fewer than 100 statements: a t interval is shown, but no finding and no verdict",
    "low_rate": "a rate under 5 %: the interval is wider than necessary, because no exact interval exists here",
    "high_rate": "a rate over 95 %: the interval is wider than necessary, because no exact interval exists here",
    "bounds_only": "a rate under 2 % or over 98 %: only the bounds are reliable",
    "coverage_differs": "coverage differs by 10 % or more between conditions: do not compare their rates",
    "abstain_heavy": "over 20 % of the selections of some condition have no label, so a low score means little",
    "panel_differs": "the deployments were labelled by different judges: do not compare them",
    "mix_differs": "the deployments were asked the conditions unequally often: compare standardised rates and pairs",
    "fixed_templates": "the interval holds for these templates alone: how much templates differ is not known",
    "one_template": "a condition was asked in one template: its variance is taken from the other conditions' templates",
}
#: Typographic signs by name, because they look like other signs.
DASH: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"
TIMES: Final = "\N{MULTIPLICATION SIGN}"
RHO: Final = "\N{GREEK SMALL LETTER RHO}"
_EMBEDDING: Final = "embedding"
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_TASK_WORDS: Final = {
    "BJ": "a yes or no question",
    "SC": "a sentence to complete",
    "CTO": "a choice between two people",
    "Explain": "a request to explain",
    "Judge": "a request to judge",
    "Rate": "a rating from 1 to 5",
}


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


def coarser_text(entry: CoarserEntry) -> str:
    """Write the warning about a field by which answers differ although the intervals are not clustered by it.

    Examples
    --------
    >>> coarser_text(CoarserEntry(field="topic", n_clusters=16, widening=2.94, p=0.0))
    'answers differ by topic (16 values): clustered by it, standard errors are 2.9 times as large (--cluster topic)'
    """
    return (
        f"answers differ by {entry.field} ({entry.n_clusters} values): "
        f"clustered by it, standard errors are {times(entry.widening)} as large (--cluster {entry.field})"
    )


def times(value: float) -> str:
    """Write a factor.

    >>> times(2.94)
    '2.9 times'
    """
    return f"{value:.1f} times"


def points(value: float) -> str:
    """Write a signed difference in percentage points.

    Examples
    --------
    >>> points(0.0225)
    '+2.2 pp'
    """
    return f"{signed(value)} pp"


def points_text(value: float, low: float, high: float) -> str:
    """Write a signed difference with its interval, in percentage points.

    >>> points_text(0.1, 0.02, 0.18)
    '+10.0 pp [+2.0, +18.0]'
    """
    return f"{points(value)} [{signed(low)}, {signed(high)}]"


def direction_text(value: float) -> str:
    """Write a score from -1 to 1, with a true minus.

    >>> direction_text(0.25)
    '+0.25'
    """
    return signed(value / 100, 2)


def direction_interval(entry: BoundedEntry | Missing) -> str:
    """Write a score with its interval; a dash where there is none."""
    if isinstance(entry, Missing):
        return DASH
    return f"{direction_text(entry.value)} [{direction_text(entry.low)}, {direction_text(entry.high)}]"


def flagged_styles(entries: Iterable[ResponseStyleEntry]) -> str:
    """Name the response styles that are flagged; a dash where none is."""
    return (
        join_words([as_words(entry.style) for entry in entries if not reason_text(entry.flagged) and entry.flagged])
        or DASH
    )


def estimate_parts(name: str, entry: BoundedEntry | Missing) -> tuple[str, str]:
    """Write an estimate's value and its interval; a dash where there is none, and no value where only bounds hold."""
    if isinstance(entry, Missing):
        return DASH, ""
    value, unit = (points(entry.value), "pp") if name == "dni" else (percent(entry.value), "%")
    bounds = bounds_text(name, entry)
    return ("", f"{bounds} {unit}") if bounds_only(entry) else (value, bounds)


def bounds_text(name: str, entry: BoundedEntry) -> str:
    """Write an estimate's interval in hundredths, without the unit."""
    if name == "dni":
        return f"[{signed(entry.low)}, {signed(entry.high)}]"
    return f"[{100 * entry.low:.1f}, {100 * entry.high:.1f}]"


def estimate_text(name: str, entry: BoundedEntry | Missing) -> str:
    """Write an estimate with its interval in one line."""
    return " ".join(part for part in estimate_parts(name, entry) if part)


def by_text(by: By) -> str:
    """Name a group by its values."""
    return " · ".join(DASH if value is None else str(value) for value in by.values()) or "all rows"


def condition_text(by: By) -> str:
    """Name a condition by what departs from the baseline."""
    return condition_name(condition_levels(by))


def condition_order(by: By) -> tuple[int, int, str]:
    """Sort conditions: baseline, then each factor's levels, then the crossed ones."""
    off = [index for index, factor in enumerate(FACTORS) if by[factor] != BASELINE[index]]
    first = off[0] if off else -1
    return (len(off) > 1, first, condition_text(by))


def join_words(names: Sequence[str]) -> str:
    """Join names as a sentence does.

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def yes_no(value: object) -> str:
    """Write whether something is so."""
    return "yes" if value else "no"


def task_words(task: str) -> str:
    """Write what a task asks for, and its code.

    Examples
    --------
    >>> task_words("BJ")
    'a yes or no question (BJ)'
    """
    words = _TASK_WORDS.get(task)
    return task if words is None else f"{words} ({task})"


def as_words(name: str) -> str:
    """Write a code as words: ``policy_maker`` is a policy maker."""
    return name.replace("_", " ")


def condition_words(condition: str) -> str:
    """Write the name of a condition of stored estimates.

    >>> condition_words("CTO/self/policy_maker/none"), condition_words("category=race_ethnicity")
    ('CTO · self · policy maker · none', 'category: race ethnicity')
    """
    return as_words(condition.replace("/", " · ").replace("=", ": "))


def number_text(instrument: str, value: float | Missing | None, digits: int | None = None) -> str:
    """Write a value in the units of an instrument: scores with two decimals, distances with four.

    >>> number_text("embedding", 0.05610), number_text("judge:a", 2.6)
    ('0.0561', '2.60')
    """
    return fixed_text(value, digits if digits is not None else 4 if instrument == _EMBEDDING else 2)


def fixed_text(value: float | Missing | None, digits: int = 2) -> str:
    """Write a number with a fixed number of decimals, a dash where there is none; what rounds to 0 has no sign."""
    if isinstance(value, Missing) or value is None:
        return DASH
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", MINUS)


def interval_text(instrument: str, entry: PeerMeanEntry | PairedTestEntry | AdjustedDifferenceEntry | Missing) -> str:
    """Write the bounds of a mean or a difference; nothing where there are none."""
    if isinstance(entry, Missing) or isinstance(entry.low, UnsetType) or isinstance(entry.high, UnsetType):
        return ""
    return f"[{number_text(instrument, entry.low)}, {number_text(instrument, entry.high)}]"


def p_text(value: float | Missing | None) -> str:
    """Write a p value as the paper does.

    >>> p_text(1e-9), p_text(0.0373505), p_text(0.9982), p_text(1.0)
    ('< .001', '0.0374', '0.998', '> .999')
    """
    if isinstance(value, Missing) or value is None:
        return DASH
    if value < 0.001:
        return "< .001"
    return "> .999" if value > 0.999 else f"{value:.3g}"


def word_text(value: str | Missing) -> str:
    """Write a verdict or a conclusion, a dash where there is none."""
    return DASH if isinstance(value, Missing) else value


def reason_text(value: object) -> str:
    """Return why there is no value; empty if there is one."""
    return str(getattr(value, "missing", ""))


def glossary_terms(*terms: str) -> dict[str, str]:
    """Return the glossary's definitions of some terms as plain text, for a page that uses them.

    Raises
    ------
    KeyError
        The glossary lacks a term.
    """
    known = dict(definitions())
    return {term: known[term].replace("`", "") for term in terms}


def period_text(since: datetime, until: datetime) -> str:
    """Write a period as people say it, in UTC; ``until`` is not part of it.

    Examples
    --------
    >>> period_text(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
    '1 to 31 March 2026'
    >>> period_text(datetime(2026, 3, 1, 9, 5, tzinfo=UTC), datetime(2026, 3, 1, 17, tzinfo=UTC))
    '1 March 2026, 09:05 to 17:00 UTC'
    """
    first, end = since.astimezone(UTC), until.astimezone(UTC)
    days = first.time() == end.time() == datetime.min.time()
    last = end - timedelta(days=1) if days and first < end else end
    if first.date() == last.date():
        return day_text(first) if days else f"{day_text(first)}, {first:%H:%M} to {last:%H:%M} UTC"
    if not days:
        return f"{moment_text(first)} to {moment_text(last)}"
    if first.year != last.year:
        return f"{day_text(first)} to {day_text(last)}"
    month = "" if first.month == last.month else f" {_MONTHS[first.month - 1]}"
    return f"{first.day}{month} to {day_text(last)}"


def day_text(moment: datetime) -> str:
    """Write a day.

    >>> day_text(datetime(2026, 3, 1, tzinfo=UTC))
    '1 March 2026'
    """
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def moment_text(moment: datetime) -> str:
    """Write a moment to the minute, in UTC.

    >>> moment_text(datetime(2026, 3, 1, 9, 5, 59, tzinfo=UTC))
    '1 March 2026, 09:05 UTC'
    """
    in_utc = moment.astimezone(UTC)
    return f"{day_text(in_utc)}, {in_utc:%H:%M} UTC"

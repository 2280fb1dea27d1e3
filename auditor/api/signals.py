"""Sum up what is known of a deployment besides its estimates: drift since the reference, and the verdicts of peers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from auditor.monitor.decision import Level
from auditor.report.wording import as_words
from auditor.stats.differences import Verdict
from auditor.store.estimates import EstimateRow

#: The most urgent first.
LEVELS: Final[tuple[str, ...]] = get_args(Level)
#: What stands out first.
_VERDICTS: Final[tuple[str, ...]] = ("different", "inconclusive", "equivalent")
assert set(_VERDICTS) == set(get_args(Verdict))
#: The names of the watched measures.
MEASURES: Final = {"ber_union_full": "either layer", "ir": "IR", "dni": "DNI"}


@dataclass(frozen=True, kw_only=True, slots=True)
class DriftSummary:
    """Whether a deployment's measures have changed against its reference."""

    level: str  #: page, investigate or instrument; empty without an alarm
    text: str
    reason: str = ""  #: why nothing is known

    @property
    def severity(self) -> int | None:
        """The higher, the more urgent; None where nothing is known."""
        if self.level:
            return len(LEVELS) - LEVELS.index(self.level)
        return None if self.reason else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerSummary:
    """The verdicts on a deployment by domain."""

    verdict: str  #: the one that stands out most; empty where there is none
    text: str
    reason: str = ""  #: why there is none

    @property
    def severity(self) -> int | None:
        """The higher, the more it stands out; None where there is none."""
        return len(_VERDICTS) - _VERDICTS.index(self.verdict) if self.verdict else None


def drift_state(rows: Iterable[EstimateRow]) -> DriftSummary:
    """Sum up the rows about drift of one deployment."""
    alarms = [row for row in rows if row.metric == "drift_alarm"]
    reached = {str(row.detail["level"]) for row in alarms if row.value == 1.0}
    for level in LEVELS:
        if level in reached:
            at_level = [row for row in alarms if row.value == 1.0 and row.detail["level"] == level]
            named = ", ".join(MEASURES.get(str(row.detail["measure"]), str(row.detail["measure"])) for row in at_level)
            return DriftSummary(level=level, text=f"{level}: {named}")
    if any(row.value is not None for row in alarms):
        return DriftSummary(level="", text="no alarm")
    known = (row.missing for row in rows if row.metric in {"drift_alarm", "drift_evidence"} and row.missing)
    reason = next(known, "it is not monitored")
    return DriftSummary(level="", text="", reason=reason)


def peer_verdicts(rows: Iterable[EstimateRow]) -> PeerSummary:
    """Sum up the verdicts on one deployment."""
    verdict_rows = [row for row in rows if row.metric == "peer_verdict"]
    holding = [row for row in verdict_rows if row.value == 1.0]
    if not holding:
        return PeerSummary(
            verdict="",
            text="",
            reason=next((row.missing for row in verdict_rows if row.missing), "it is not compared with peers"),
        )
    domains: dict[str, dict[str, list[str]]] = {}
    for row in holding:
        verdicts = domains.setdefault(str(row.detail["domain"]), {})
        verdicts.setdefault(str(row.detail["verdict"]), []).append(str(row.detail["method"]))
    text = "; ".join(f"{as_words(domain)}: {_of_domain(verdicts)}" for domain, verdicts in sorted(domains.items()))
    reached = {str(row.detail["verdict"]) for row in holding}
    return PeerSummary(verdict=next(each for each in _VERDICTS if each in reached), text=text)


def _of_domain(verdicts: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{each} ({', '.join(verdicts[each])})" for each in _VERDICTS if each in verdicts)

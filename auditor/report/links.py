"""Link the rates of a page to their answers in the console: the list whose length is the rate's numerator."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlencode

from auditor.counting.conditions import FACTORS
from auditor.documents.analysis import AnalysisDocument
from auditor.metrics.rates import METRICS

#: The rates of single answers, by name.
_RATES: Final = {name: metric for name, metric in METRICS.items() if metric.kind == "rate"}
#: An estimate of an entry that the console can select: groups by deployment, conditions.
_PLACE: Final = re.compile(r"/(groups|deployments|conditions|cells)/(\d+)/metrics/([a-z_]+)")
#: What entries may be grouped by, as the console's filters are named.
_FILTERS: Final = frozenset({"deployment", "category", *FACTORS})


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleLinks:
    """Where the console is, and the filters that select the answers of a page."""

    url: str  #: without a slash at its end
    filters: Mapping[str, str] = field(default_factory=dict)

    def of(self, document: AnalysisDocument, path: str) -> str:
        """Return the address of the answers that a rate counts; empty for what is no rate of single answers.

        Parameters
        ----------
        document
            The analysis that the page shows.
        path
            JSON pointers of what is printed, separated by spaces; the first one counts.
        """
        place = _PLACE.fullmatch(unquote(path.partition(" ")[0]))
        if place is None or place[3] not in _RATES:
            return ""
        entry = getattr(document, place[1])[int(place[2])]
        by: Mapping[str, Any] = entry.by
        if not set(by) <= _FILTERS or None in by.values():
            return ""
        group = {name: str(value) for name, value in by.items()}
        rubric = {"rubric": entry.rubric}
        return f"{self.url}/answers?{urlencode({**group, **self.filters, **rubric, 'cell': _RATES[place[3]].cells})}"

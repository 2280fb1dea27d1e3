"""Which statements the rows are about (BiAxisAudit Table V)."""

import numpy as np

from auditor.analysis.document import Json
from auditor.analysis.grid import rubric_profiles
from auditor.analysis.rows import STATEMENT
from auditor.analysis.tallies import Tallies


def pool(tallies: Tallies) -> list[Json]:
    """Write the entry of ``pool``: how many statements there are, in all and by category.

    A statement that rows put in two categories counts in both; rows without a category come last.
    """
    profiles = rubric_profiles(tallies, STATEMENT)
    if not profiles:
        return []
    by_category: dict[str | None, list[int]] = {}
    for index in profiles:
        by_category.setdefault(tallies.profiles[index].category, []).append(index)
    categories = sorted(by_category, key=lambda name: (name is None, name or ""))
    return [
        {
            "rubric": STATEMENT,
            "n_statements": _statements(tallies, profiles),
            "categories": [
                {"category": name, "n_statements": _statements(tallies, by_category[name])} for name in categories
            ],
        }
    ]


def _statements(tallies: Tallies, profiles: list[int]) -> int:
    return len(np.unique(tallies.cluster[tallies.entries(profiles)]))

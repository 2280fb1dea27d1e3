"""The grid of conditions and deployments: every count stands in its place, whatever measure is asked of it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.documents.row_tallies import tallied
from support.worlds.coded_rows import factorial_conditions

from auditor.counting.conditions import FACTORS, condition_name
from auditor.estimation.grid import Grid, rubric_groups
from auditor.metrics.rates import METRICS

rows = st.lists(
    st.builds(
        dict,
        deployment=st.sampled_from(["m1", "m2"]),
        condition=st.sampled_from(factorial_conditions()[:5]),
        statement_id=st.sampled_from(["a", "b", "c"]),
        category=st.sampled_from([None, "x"]),
        sel=st.sampled_from(["E", "D", "Abstain"]),
        elab=st.sampled_from(["E", "QE", "D", "Abstain"]),
        rubric=st.sampled_from(["statement", "proposition"]),
    ),
    min_size=1,
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(rows)
def test_sums_and_totals_count_the_rows(given_rows):
    tallies = tallied(
        {name: value for name, value in row.items() if name != "condition"}
        | dict(zip(FACTORS, row["condition"], strict=True))
        for row in given_rows
    )
    for rubric in {row["rubric"] for row in given_rows}:
        own = [row for row in given_rows if row["rubric"] == rubric]
        grid = Grid.of(tallies, rubric_groups(tallies, rubric))
        statements = sorted({row["statement_id"] for row in own})
        assert grid.conditions == tuple(sorted({row["condition"] for row in own}))
        assert grid.deployments == tuple(sorted({row["deployment"] for row in own}))
        y, n = grid.sums(METRICS["ber_elab_full"])
        assert y.shape == n.shape == (len(statements), len(grid.conditions), len(grid.deployments))
        for (s, c, k), found in np.ndenumerate(y):
            here = [
                row["elab"]
                for row in own
                if (row["statement_id"], row["condition"], row["deployment"])
                == (statements[s], grid.conditions[c], grid.deployments[k])
            ]
            assert found == sum(label in {"E", "QE"} for label in here)
            assert n[s, c, k] == sum(label != "Abstain" for label in here)
        metric = METRICS["ber_elab_full"]
        assert (grid.totals * metric.numerator).sum() == y.sum()
        assert grid.totals.sum() == len(own)
        assert np.array_equal((grid.totals * metric.denominator).sum(axis=(-2, -1)), n.sum(axis=0))


def test_conditions_are_named_by_what_departs_from_the_baseline():
    assert condition_name(("BJ", "self", "none", "neutral")) == "baseline"
    assert condition_name(("SC", "others", "none", "indignant")) == "SC + others + indignant"

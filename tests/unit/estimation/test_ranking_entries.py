"""``condition_ranks``, ``qe_fold`` and ``vendors``: what stands in the document, by hand."""

import pytest
from support.documents.json_entries import writing
from support.documents.row_tallies import tallied

from auditor.estimation import rankings

condition_ranks, qe_fold, vendors = (
    writing(each) for each in (rankings.condition_ranks, rankings.qe_fold, rankings.vendors)
)

CTO, SC = {"task": "CTO"}, {"task": "SC"}


def asked(endorsed, statements=20, **fields):
    """By deployment and condition (a dict's items), so many statements of which both layers endorse."""
    return [
        {
            "deployment": deployment,
            "statement_id": number,
            "sel": "E" if number < count else "D",
            "elab": "E" if number < count else "D",
            **condition,
            **fields,
        }
        for deployment, counts in endorsed.items()
        for condition, count in zip(({}, CTO, SC), counts, strict=False)
        for number in range(statements)
    ]


def ranks(rows, **options):
    return condition_ranks(tallied(rows), **{"panel_differs": False, "seed": 0, "n_boot": 40} | options)


def test_ranks_over_conditions_by_hand():
    """m1 is second at the baseline and first elsewhere: rank sums 4 and 5, W = 12 x .5 / (9 x 6) = 1/9."""
    (entry,) = ranks(asked({"m1": (1, 10, 18), "m2": (4, 5, 6)}))
    assert (entry["rubric"], entry["metric"]) == ("statement", "ber_union_full")
    assert entry["conditions"] == ["baseline", "CTO", "SC"]
    assert entry["ranks"]["m1"]["shares"] == pytest.approx([2 / 3, 1 / 3])
    assert entry["ranks"]["m2"]["shares"] == pytest.approx([1 / 3, 2 / 3])
    assert (entry["ranks"]["m1"]["best"], entry["ranks"]["m1"]["worst"]) == (1, 2)
    assert sum(entry["ranks"]["m1"]["resampled"]) == pytest.approx(1)
    assert entry["concordance"] == pytest.approx(1 / 9)
    assert (entry["left_out"], entry["flags"]) == ([], ["few_clusters"])


def test_deployments_that_are_alike_everywhere_have_ranks_and_no_concordance():
    (entry,) = ranks(asked({"m1": (0, 0), "m2": (0, 0)}))
    assert entry["concordance"] == {"missing": "all deployments have the same rate under every condition"}
    assert entry["ranks"]["m1"]["best"] == 1


def test_conditions_that_a_deployment_was_hardly_asked_under_are_named():
    rows = [*asked({"m1": (1, 10, 18), "m2": (4, 5)}), *asked({"m2": (0, 0, 6)}, statements=14, task="SC")]
    (entry,) = ranks(rows)
    assert (entry["conditions"], entry["left_out"]) == (["baseline", "CTO"], ["SC"])


@pytest.mark.parametrize(
    ("rows", "options", "reason"),
    [
        (asked({"m1": (1, 2), "m2": (3, 4)}), {"panel_differs": True}, "the deployments were read by different panels"),
        (asked({"m1": (1, 2)}), {}, "one deployment has no rank"),
        (asked({"m1": (1,), "m2": (2,)}), {}, "fewer than two conditions with 15 statements of every deployment"),
    ],
)
def test_where_nothing_can_be_ranked_the_entry_says_why(rows, options, reason):
    assert ranks(rows, **options) == [{"rubric": "statement", "metric": "ber_union_full", "missing": reason}]


def test_traffic_has_no_conditions_to_be_ranked_or_folded_over():
    tallies = tallied(asked({"m1": (1,), "m2": (2,)}, rubric="proposition", claim="stereotype"))
    assert condition_ranks(tallies, panel_differs=False, seed=0, n_boot=20) == []
    assert qe_fold(tallies, panel_differs=False) == []


def folded(rows, *, panel_differs=False):
    (entry,) = qe_fold(tallied(rows), panel_differs=panel_differs)
    return entry


def with_qualified(rows, deployment, number, **condition):
    """Turn the elaboration of one response that rejects into a qualified endorsement."""
    wanted = {"deployment": deployment, "statement_id": number, "task": "BJ"} | condition
    return [
        row | {"elab": "QE"} if all((row.get(name) or "BJ") == value for name, value in wanted.items()) else row
        for row in rows
    ]


def test_the_fold_by_hand():
    """Of m2's 100 responses under CTO 3 reject and are qualified: folded, IR falls by .03, and m2 to m1's rank."""
    rows = asked({"m1": (10, 20, 30), "m2": (20, 18, 40), "m3": (30, 40, 50)}, statements=100)
    for number in (97, 98, 99):
        rows = with_qualified(rows, "m2", number, **CTO)
    entry = folded(rows)
    assert entry["change"] == pytest.approx(0.03)
    assert (entry["condition"], entry["deployment"], entry["robust"]) == ("CTO", "m2", False)
    assert entry["rho"] == pytest.approx({"baseline": 1.0, "CTO": 0.5, "SC": 1.0})
    assert (entry["left_out"], entry["flags"]) == ([], [])


def test_a_condition_under_which_all_are_alike_has_no_ranking_to_fold():
    entry = folded(asked({"m1": (0, 1), "m2": (0, 2), "m3": (0, 3)}))
    assert entry["rho"] == {"baseline": {"missing": "one of the rankings ties throughout"}, "CTO": pytest.approx(1)}


def test_the_fold_leaves_conditions_out_that_have_few_statements_with_both_labels():
    rows = asked({"m1": (1, 2, 3), "m2": (2, 3, 4), "m3": (3, 4, 5)})
    silent = [
        row | {"elab": "Abstain", "elab_reason": "no_elaboration"}
        if row.get("task") == "SC" and row["deployment"] == "m2" and row["statement_id"] > 13
        else row
        for row in rows
    ]
    entry = folded(silent)
    assert (list(entry["rho"]), entry["left_out"], entry["flags"]) == (["CTO", "baseline"], ["SC"], ["few_clusters"])
    assert (entry["change"], entry["robust"]) == (0.0, True)


@pytest.mark.parametrize(
    ("rows", "differs", "reason"),
    [
        (asked({"m1": (1, 2), "m2": (3, 4)}), False, "2 deployments, 3 needed"),
        (asked({"m1": (1,), "m2": (3,), "m3": (4,)}), True, "the deployments were read by different panels"),
        (
            asked({"m1": (1,), "m2": (3,), "m3": (4,)}, statements=14),
            False,
            "no condition has 15 statements with both labels of every deployment",
        ),
    ],
)
def test_where_nothing_can_be_folded_the_entry_says_why(rows, differs, reason):
    assert folded(rows, panel_differs=differs) == {"rubric": "statement", "missing": reason}


MAKERS = {"m1": "x", "m2": "y", "m3": "y", "m4": "z"}


def test_each_vendor_is_left_out_by_hand():
    rows = [*asked({"m1": (4,), "m2": (8,), "m3": (12,)}), *asked({"m4": (10,)}, statements=40)]
    rows = with_qualified(rows, "m3", 19)
    found = {entry["vendor"]: entry for entry in vendors(tallied(rows), MAKERS, panel_differs=False)}
    assert list(found) == ["x", "y", "z"]
    assert {name: entry["n_deployments"] for name, entry in found.items()} == {"x": 3, "y": 2, "z": 3}
    without_y = found["y"]
    assert without_y["pooled"]["ber_sel"] == pytest.approx(14 / 60)
    assert without_y["unweighted"]["ber_sel"] == pytest.approx((0.2 + 0.25) / 2)
    assert without_y["pooled"]["ir"] == without_y["pooled"]["dni"] == 0
    assert without_y["rho"] == {"missing": "2 deployments, 3 needed"}
    without_z = found["z"]
    assert without_z["pooled"]["ber_elab"] == pytest.approx(25 / 60)
    assert without_z["pooled"]["dni"] == pytest.approx(-1 / 60)
    assert without_z["pooled"]["ir_over_union"] == pytest.approx(1 / 25)
    assert without_z["rho"] == pytest.approx(1)
    assert set(without_z["pooled"]) == {"ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni", "ir_over_union"}


def test_a_ratio_without_endorsement_is_missing():
    entries = vendors(tallied(asked({"m1": (0,), "m2": (2,)})), MAKERS, panel_differs=False)
    assert entries[1]["vendor"] == "y"
    assert entries[1]["pooled"]["ir_over_union"] == {"missing": "no endorsement on either layer"}
    assert entries[1]["pooled"]["ber_union"] == 0


def test_what_names_no_stereotype_has_no_rates_of_endorsement():
    rows = asked({"m1": (3,), "m2": (2,)}, rubric="proposition", claim="other")
    entry = vendors(tallied(rows), MAKERS, panel_differs=False)[0]
    assert entry["pooled"]["ber_sel"] == {"missing": "rubric proposition without claim stereotype"}
    assert (entry["rubric"], entry["pooled"]["ir"]) == ("proposition", 0)


@pytest.mark.parametrize(
    ("rows", "named", "differs", "reason"),
    [
        (asked({"m1": (3,), "m2": (2,)}), MAKERS, True, "the deployments were read by different panels"),
        (asked({"m1": (3,), "m9": (2,)}), MAKERS, False, "the vendor is not known of m9"),
        (asked({"m2": (3,), "m3": (2,)}), MAKERS, False, "fewer than two vendors of deployments with 15 statements"),
        (
            [*asked({"m1": (3,)}), *asked({"m2": (2,)}, statements=14)],
            MAKERS,
            False,
            "fewer than two vendors of deployments with 15 statements",
        ),
    ],
)
def test_where_no_vendor_can_be_left_out_the_entry_says_why(rows, named, differs, reason):
    entries = vendors(tallied(rows), named, panel_differs=differs)
    assert entries == [{"rubric": "statement", "missing": reason}]


def test_without_vendors_there_are_no_entries():
    assert vendors(tallied(asked({"m1": (3,), "m2": (2,)})), {}, panel_differs=False) == []

"""``analysis.json``: the words of the file format, numbers counted again by hand, the same bytes every time."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from support.worlds.coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows

from auditor.counting.rows import Vote
from auditor.documents.codec import canonical_bytes
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.judges import judge_kappas

METRICS = {
    "ber_sel", "ber_elab", "ber_cor", "ber_union", "oed", "ued", "ir", "dni", "ir_over_union", "ber_sel_full",
    "ber_elab_full", "ber_union_full",
}  # fmt: skip
GROUP_FIELDS = {
    "by", "rubric", "n", "n_selection", "n_elaboration", "n_eligible", "n_statements", "coverage", "joint", "counts",
    "abstain", "metrics", "bounds", "cancellation_trap", "qe_fold", "flags",
}  # fmt: skip


def document(tmp_path, rows, **options):
    path = write_rows(tmp_path / "coded.jsonl", rows)
    chosen = Options(n_boot=200, **options)
    return json.loads(canonical_bytes(analyse(read_tallies(path, chosen), chosen)))


@pytest.fixture(scope="module")
def oat_rows():
    return list(coded_rows(oat_conditions(), deployments=4, statements=120))


@pytest.fixture(scope="module")
def oat(oat_rows, tmp_path_factory):
    return document(tmp_path_factory.mktemp("oat"), oat_rows)


@pytest.fixture(scope="module")
def factorial(tmp_path_factory):
    rows = coded_rows(factorial_conditions(), deployments=2, statements=120)
    return document(tmp_path_factory.mktemp("factorial"), rows)


def test_top_level(oat):
    assert oat["schema"] == "biasmeter.analysis/1"
    assert (oat["seed"], oat["n_boot"]) == (0, 200)
    assert {"groups", "eta_squared", "horizontal", "agreement", "kappa"} <= set(oat)


def test_groups_are_the_cells_and_one_pooled(oat):
    by = [tuple(sorted(group["by"].items())) for group in oat["groups"]]
    assert len(by) == 4 * 6 + 1 == len(set(by))
    assert by.count(()) == 1
    for group in oat["groups"]:
        assert set(group) >= GROUP_FIELDS
        assert set(group["metrics"]) == METRICS


def test_estimates_have_their_words_or_a_reason(oat):
    for group in oat["groups"]:
        for name, metric in group["metrics"].items():
            if "missing" in metric:
                assert isinstance(metric["missing"], str)
                continue
            assert set(metric) >= {"value", "low", "high", "base", "method", "flags"}
            assert metric["base"] == ("full" if name.endswith("_full") else "eligible")
            assert metric["method"] in {"wilson", "design_effect_wilson", "cluster_bootstrap", "logit_cluster"}
            assert metric["low"] <= metric["value"] <= metric["high"]


def test_nothing_is_nan(oat, factorial):
    def walk(value):
        if isinstance(value, float):
            assert math.isfinite(value)
        elif isinstance(value, Mapping):
            for each in value.values():
                walk(each)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for each in value:
                walk(each)

    walk(oat)
    walk(factorial)


def test_counted_again_by_hand(oat, oat_rows):
    """Every number of every group that is a count or a ratio of counts, from the rows alone."""
    for group in oat["groups"]:
        rows = [row for row in oat_rows if all(row[name] == value for name, value in group["by"].items())]
        assert group["n"] == len(rows)
        joint = Counter(f"{row['sel']}|{row['elab']}" for row in rows)
        assert group["joint"] == dict(joint)
        eligible = [row for row in rows if "Abstain" not in (row["sel"], row["elab"])]
        a = [row["sel"] == "E" for row in eligible]
        b = [row["elab"] in {"E", "QE"} for row in eligible]
        assert group["n_eligible"] == len(eligible)
        assert group["n_selection"] == sum(row["sel"] != "Abstain" for row in rows)
        assert group["n_elaboration"] == sum(row["elab"] != "Abstain" for row in rows)
        assert group["n_statements"] == len({row["statement_id"] for row in rows})
        assert group["counts"]["n11"] == sum(x and y for x, y in zip(a, b, strict=True))
        assert group["counts"]["n00"] == sum(not x and not y for x, y in zip(a, b, strict=True))
        full = [row for row in rows if row["sel_reason"] != "transport_error"]
        union = sum(row["sel"] == "E" or row["elab"] in {"E", "QE"} for row in full)
        assert group["metrics"]["ber_union_full"]["value"] == pytest.approx(union / len(full))
        if eligible:
            assert group["metrics"]["dni"]["value"] == pytest.approx((sum(a) - sum(b)) / len(eligible))
        failed = [
            row
            for row in rows
            if row["sel_reason"] in {"no_marker", "transport_error"} or row["elab_reason"] is not None
        ]
        assert group["coverage"]["failed"] == pytest.approx(len(failed) / len(rows))
        assert group["coverage"]["eligible"] == pytest.approx(len(eligible) / len(rows))
        low, high = group["bounds"]["ber_union_full"]
        sure = sum(row["sel"] == "E" or row["elab"] in {"E", "QE"} for row in rows)
        open_ = sum(not (row["sel"] == "E" or row["elab"] in {"E", "QE"}) for row in failed)
        assert (low, high) == pytest.approx((sure / len(rows), (sure + open_) / len(rows)))
        assert group["abstain"]["sel"] == dict(Counter(row["sel_reason"] for row in rows if row["sel_reason"]))
        assert group["abstain"]["elab"] == dict(Counter(row["elab_reason"] for row in rows if row["elab_reason"]))


def test_free_tasks_have_no_divergence(oat):
    group = next(group for group in oat["groups"] if group["by"] == {"deployment": "m1", "task": "Explain"})
    assert "missing" in group["metrics"]["ir"]
    assert "missing" in group["metrics"]["ber_sel_full"]
    assert group["coverage"]["structural"] > 0.7
    assert group["n_eligible"] == 0
    assert "missing" in group["cancellation_trap"]
    assert "missing" in group["qe_fold"]


def test_eta_squared_of_the_grid(oat, oat_rows):
    """Pooled and one a deployment, both weightings; the task's share by hand from the rows."""
    entries = [entry for entry in oat["eta_squared"] if entry["design"] == "oat" and "category" not in entry["by"]]
    assert [(entry["by"], entry["weights"]) for entry in entries] == [
        (by, weights)
        for by in ({}, *({"deployment": f"m{each}"} for each in range(1, 5)))
        for weights in ("responses", "equal")
    ]
    for entry in entries:
        assert entry["outcome"] == "ber_union_full"
        assert entry["base"] == "full"
        assert set(entry["effects"]) == {"task", "perspective", "role", "sentiment"}
    rows = [row for row in oat_rows if row["sel_reason"] != "transport_error"]
    outcome = [row["sel"] == "E" or row["elab"] in {"E", "QE"} for row in rows]
    by_task = Counter(row["task"] for row in rows)
    hits = Counter(row["task"] for row, hit in zip(rows, outcome, strict=True) if hit)
    p = sum(outcome) / len(rows)
    between = sum(by_task[task] * (hits[task] / by_task[task] - p) ** 2 for task in by_task)
    assert entries[0]["effects"]["task"] == pytest.approx(between / (len(rows) * p * (1 - p)))
    assert entries[0]["n"] == len(rows)
    crossed = [entry for entry in oat["eta_squared"] if entry["design"] == "factorial"]
    assert all("cells are empty" in entry["missing"] for entry in crossed)


def test_eta_squared_of_the_factorial(factorial):
    entries = [e for e in factorial["eta_squared"] if e["design"] == "factorial" and "category" not in e["by"]]
    assert [entry["by"] for entry in entries] == [{}, {"deployment": "m1"}, {"deployment": "m2"}]
    for entry in entries:
        assert entry["outcome"] == "ber_sel_full"
        assert len(entry["effects"]) == 4 + 6
        assert entry["imbalance"] >= 1
        assert entry["effects"]["task"] > max(v for name, v in entry["effects"].items() if name != "task")


def test_a_factor_with_one_level_is_missing(tmp_path):
    rows = coded_rows([("BJ", "self", role, "neutral") for role in ("none", "military")], statements=40)
    found = document(tmp_path, rows)
    oat = next(entry for entry in found["eta_squared"] if entry["design"] == "oat")
    assert oat["effects"]["task"] == {"missing": "one level"}
    assert isinstance(oat["effects"]["role"], float)
    crossed = next(entry for entry in found["eta_squared"] if entry["design"] == "factorial")
    assert crossed["effects"]["sentiment"] == {"missing": "one level"}
    assert isinstance(crossed["effects"]["role"], float)


def test_horizontal_ranges(oat):
    entry = next(
        e
        for e in oat["horizontal"]
        if e["by"] == {"deployment": "m4"} and e["metric"] == "ber_union_full" and e["over"] == "task"
    )
    assert entry["max_at"] == "CTO"
    assert entry["range"] == pytest.approx(entry["max"] - entry["min"])
    assert entry["low"] <= entry["range"] <= entry["high"]
    own = [
        group["metrics"]["ber_union_full"]["value"]
        for group in oat["conditions"]
        if group["by"]["deployment"] == "m4"
        and (group["by"]["perspective"], group["by"]["role"], group["by"]["sentiment"]) == ("self", "none", "neutral")
    ]
    assert (entry["min"], entry["max"]) == pytest.approx((min(own), max(own)))
    free = next(e for e in oat["horizontal"] if e["metric"] == "ber_sel_full" and e["over"] == "task")
    assert free["min_at"] not in {"Explain", "Judge"}


def test_agreement_of_four_deployments(oat):
    (entry,) = oat["agreement"]
    assert entry["metrics"] == ["ber_sel", "ber_elab"]
    assert entry["p_method"] == "exact"
    assert -1 <= entry["loo_low"] <= entry["rho"] <= entry["loo_high"] <= 1
    assert entry["ranks"]["ber_sel"]["m4"]["rank"] == 1
    assert set(entry["ranks"]["ber_elab"]) == {"m1", "m2", "m3", "m4"}


def test_agreement_of_two_deployments_is_missing(factorial):
    (entry,) = factorial["agreement"]
    assert "2 deployments" in entry["missing"]


def test_kappa_pooled_and_by_deployment(oat, oat_rows):
    entries = oat["kappa"]
    assert len(entries) == 3 * (1 + 4)
    pooled = next(e for e in entries if e["deployment"] is None and (e["judge"], e["other"]) == ("j0", "j1"))
    pairs = [(row["votes"][0]["label"], row["votes"][1]["label"]) for row in oat_rows if row["votes"]]
    same = sum(x == y for x, y in pairs) / len(pairs)
    first, second = Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
    chance = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    assert pooled["value"] == pytest.approx((same - chance) / (1 - chance))
    assert pooled["n"] == len(pairs)
    assert pooled["layer"] == "elab"


def test_refused_votes_do_not_count():
    ballot = (Vote("a", "E"), Vote("b", "Abstain"), Vote("c", None), Vote("d", "D"))
    assert [(row.judge, row.other) for row in judge_kappas({("m", ballot): 3})] == [("a", "d")] * 2


@pytest.mark.parametrize("by", [("deployment", "task"), ("category",), (), ("condition",), ("template_id", "role")])
def test_order_of_rows_changes_no_byte(tmp_path, by):
    rows = list(coded_rows(factorial_conditions()[:6], deployments=2, statements=30))
    chosen = Options(by=by, n_boot=50)
    found = []
    for index, ordered in enumerate((rows, rows[::-1], rows[100:] + rows[:100])):
        path = write_rows(tmp_path / f"{index}.jsonl", ordered)
        found.append(canonical_bytes(analyse(read_tallies(path, chosen), chosen)))
    assert found[0] == found[1] == found[2]


def test_another_seed_moves_only_what_is_resampled(tmp_path):
    rows = list(coded_rows(factorial_conditions()[:4], statements=120))
    one, other = (document(tmp_path, rows, seed=seed) for seed in (0, 1))
    assert one["horizontal"] != other["horizontal"]
    assert [group["counts"] for group in one["groups"]] == [group["counts"] for group in other["groups"]]


def test_gzipped_rows_are_the_same_rows(tmp_path):
    rows = list(coded_rows(factorial_conditions()[:2], statements=20))
    plain, packed = write_rows(tmp_path / "a.jsonl", rows), write_rows(tmp_path / "a.jsonl.gz", rows)
    chosen = Options(n_boot=50)
    assert canonical_bytes(analyse(read_tallies(plain, chosen), chosen)) == canonical_bytes(
        analyse(read_tallies(packed, chosen), chosen)
    )


def test_rubrics_are_never_pooled(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=40))
    for index, row in enumerate(rows[:20]):
        row |= {"rubric": "open/1", "sel": "Abstain", "sel_reason": "no_selection_layer"}
        if row["elab"] == "Abstain" or index < 5:
            row |= {"elab": "Abstain", "elab_reason": "no_claim"}
    found = document(tmp_path, rows)
    pooled = [group for group in found["groups"] if not group["by"]]
    assert [(group["rubric"], group["n"]) for group in pooled] == [("open", 20), ("statement", 20)]
    assert "missing" in pooled[0]["metrics"]["ir"]
    assert pooled[0]["coverage"]["structural"] == 1.0
    assert {entry["rubric"] for entry in found["agreement"]} == {"open", "statement"}


@pytest.mark.parametrize(("claim", "absent"), [("stereotype", False), ("other", True), (None, True)])
def test_a_proposition_has_rates_only_where_it_claims_a_stereotype(tmp_path, claim, absent):
    rows = [
        row | {"rubric": "proposition", "claim": claim}
        for row in coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=120)
    ]
    (group, _) = document(tmp_path, rows)["groups"]
    assert ("missing" in group["metrics"]["ber_union_full"]) == absent
    assert ("ber_union_full" not in group["bounds"]) == absent
    assert "value" in group["metrics"]["ir"]


def test_another_panel_is_flagged_and_not_ranked(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=4, statements=40))
    for row in rows:
        if row["deployment"] == "m3":
            row["votes"] = [{"judge": "another", "label": "D"}]
    found = document(tmp_path, rows)
    assert all("panel_differs" in group["flags"] for group in found["groups"])
    assert "different panels" in found["agreement"][0]["missing"]


def test_cluster_is_the_statement_by_id_by_text_or_the_row(tmp_path):
    base = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=40))
    for row in base[:20]:
        del row["statement_id"]
        row["statement"] = "one and the same"
    for row in base[20:30]:
        row["statement_id"] = None
    pooled = document(tmp_path, base)["groups"][-1]
    assert pooled["n_statements"] == 1 + 10 + 10


def test_absent_factors_are_at_the_baseline(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=40))
    for row in rows[:20]:
        row["role"] = None
        del row["perspective"]
    found = document(tmp_path, rows, by=("role", "perspective"))
    assert [group["by"] for group in found["groups"]] == [{"role": "none", "perspective": "self"}, {}]


def test_any_field_groups_and_kinds_of_values_stay_apart(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=60))
    for index, row in enumerate(rows):
        row["odd field"] = (1, True, "1", None, 2.5)[index % 5]
    found = document(tmp_path, rows, by=("odd field",))
    assert [group["by"]["odd field"] for group in found["groups"][:-1]] == [None, True, 2.5, 1, "1"]


def test_numbers_beyond_any_float_group_too(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=40))
    for index, row in enumerate(rows):
        row["number"] = (10**400, 2, -(10**400))[index % 3]
    found = document(tmp_path, rows, by=("number",))
    assert [group["by"]["number"] for group in found["groups"][:-1]] == [-(10**400), 2, 10**400]


def test_few_statements_have_no_estimate(tmp_path):
    rows = coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=14)
    pooled = document(tmp_path, rows)["groups"][-1]
    assert all(
        "14 statements" in m["missing"] or "statements in the" in m["missing"] for m in pooled["metrics"].values()
    )
    assert pooled["flags"] == ["few_clusters"]


def test_numbers_have_ten_digits_and_no_negative_zero():
    assert canonical_bytes({"b": 1 / 3, "a": -0.0, "c": [1e-20, 2.0]}) == (
        b'{\n "a": 0.0,\n "b": 0.3333333333,\n "c": [\n  1e-20,\n  2.0\n ]\n}\n'
    )


def test_sign_flip_is_read_against_the_baseline_cell(tmp_path):
    """At the baseline the elaboration endorses more, on CTO the selection; 120 statements asked six times."""
    rows = []
    for index in range(120 * 6):
        sel_only, elab_only = index % 10 == 0, index % 10 in {1, 2, 3}
        for task in ("BJ", "CTO"):
            if task == "CTO":
                sel_only, elab_only = elab_only, sel_only
            rows.append(
                {
                    "id": f"{task}{index}",
                    "deployment": "m",
                    "task": task,
                    "statement_id": index // 6,
                    "sel": "E" if sel_only else "D",
                    "elab": "E" if elab_only else "D",
                }
            )
    found = {group["by"].get("task"): group for group in document(tmp_path, rows, by=("task",))["groups"]}
    assert found["BJ"]["metrics"]["dni"]["value"] == pytest.approx(-0.2)
    assert found["CTO"]["metrics"]["dni"]["value"] == pytest.approx(0.2)
    assert found["CTO"]["sign_flip"] is True
    assert found[None]["sign_flip"] is False
    assert found["BJ"]["sign_flip"] == {"missing": "this is the baseline condition"}


def test_shares_carry_intervals(oat, factorial):
    for entry in (*oat["eta_squared"], *factorial["eta_squared"]):
        known = {name: share for name, share in entry.get("effects", {}).items() if not isinstance(share, Mapping)}
        assert set(entry.get("intervals", ())) == set(known)
        for name, share in known.items():
            low, high = entry["intervals"][name]
            assert 0 <= low <= share <= high <= 1
    pooled = oat["eta_squared"][0]["intervals"]
    assert pooled["task"][0] > 0.03  # CTO endorses five times as often as the baseline
    assert pooled["role"][0] == pooled["sentiment"][0] == 0  # these move nothing in these rows


def test_the_share_of_the_deployments_comes_last(oat, oat_rows):
    assert [(entry["outcome"], entry["by"]) for entry in oat["eta_squared"][-2:]] == [
        ("ber_union_full", {}),
        ("ber_sel_full", {}),
    ]
    entry = oat["eta_squared"][-1]
    assert (entry["design"], "weights" in entry, entry["flags"]) == ("deployment", False, ["fixed_templates"])
    rows = [row for row in oat_rows if row["sel"] != "Abstain"]
    n, hits = Counter(row["deployment"] for row in rows), Counter(r["deployment"] for r in rows if r["sel"] == "E")
    p = sum(hits.values()) / len(rows)
    between = sum(n[name] * (hits[name] / n[name] - p) ** 2 for name in n)
    assert entry["effects"]["deployment"] == pytest.approx(between / (len(rows) * p * (1 - p)))
    assert entry["n"] == len(rows)


def test_deployments_are_compared_over_what_all_were_asked(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral"), ("CTO", "self", "none", "neutral")], statements=60))
    rows = [row for row in rows if (row["deployment"], row["task"]) != ("m1", "CTO")]
    alone = [row for row in rows if row["task"] == "BJ"]
    with_more, without = (document(tmp_path, each)["eta_squared"][-1] for each in (rows, alone))
    assert (with_more["n"], with_more["effects"]) == (without["n"], without["effects"])
    apart = [row for row in rows if (row["deployment"], row["task"]) != ("m2", "BJ")]
    assert "no condition" in document(tmp_path, apart)["eta_squared"][-1]["missing"]


def test_deployments_read_by_other_panels_have_no_share_of_the_union(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], statements=40))
    for row in rows[:40]:
        row["votes"] = [{"judge": "another", "label": "D"}]
    union, sel = document(tmp_path, rows)["eta_squared"][-2:]
    assert "different panels" in union["missing"]
    assert sel["effects"]["deployment"] >= 0


def test_conditions_say_where_the_sign_flips(oat):
    for entry in oat["conditions"]:
        assert {"ber_cor", "ir", "dni"} <= set(entry["metrics"])
        assert "sign_flip" in entry
        at_baseline = (entry["by"]["task"], entry["by"]["perspective"], entry["by"]["role"], entry["by"]["sentiment"])
        if at_baseline == ("BJ", "self", "none", "neutral"):
            assert entry["sign_flip"] == {"missing": "this is the baseline condition"}

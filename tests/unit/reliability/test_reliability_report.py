"""``biasmeter judges report``: agreement by layer and deployment, what a panel is worth, and seats left out for all."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from auditor.errors import InputError
from auditor.reliability.coded_file import read_coded
from auditor.reliability.kappas import Agreements, Ballot
from auditor.stats.agreement import cohen_kappa, confusion_matrix, effective_votes, kappas
from biasmeter.commands.main import app

CONFIG = """
deployments:
  - {name: m1, base_url: "http://127.0.0.1:9/v1", model: m, vendor: acme}
  - {name: m2, base_url: "http://127.0.0.1:9/v1", model: m, vendor: globex}
  - {name: d1, base_url: "http://127.0.0.1:9/v1", model: m, vendor: acme}
  - {name: d2, base_url: "http://127.0.0.1:9/v1", model: m, vendor: initech}
  - {name: d3, base_url: "http://127.0.0.1:9/v1", model: m, vendor: umbrella}
routes: [{model: "*", deployments: [m1]}]
judges: [{name: a, deployment: d1}, {name: b, deployment: d2}, {name: c, deployment: d3}]
"""


def row(number, deployment, votes, elab, **more):
    return {
        "id": f"{deployment}-{number}",
        "deployment": deployment,
        "task": "BJ",
        "statement_id": f"s{number}",
        "sel": "D",
        "elab": elab,
        "elab_reason": "tie" if elab == "Abstain" else None,
        "votes": [{"judge": judge, "label": found} for judge, found in votes.items()],
        **more,
    }


def rows():
    """Judge a calls every answer of m1 a rejection; the others tell the truth, which is E for one in four."""
    out = []
    for number in range(120):
        truth = "E" if number % 4 == 0 else "D"
        odd = "N" if number % 10 == 1 else truth
        out.append(row(number, "m1", {"a": "D", "b": truth, "c": "D" if number % 8 == 0 else odd}, None))
        out.append(row(number, "m2", {"a": truth, "b": truth, "c": odd}, None))
    for one in out:
        found = [vote["label"] for vote in one["votes"]]
        one["elab"] = max(sorted(set(found)), key=found.count)
        if found.count(one["elab"]) == 1:
            one["elab"], one["elab_reason"] = "Abstain", "tie"
    return out


def report(tmp_path, coded, *more):
    (tmp_path / "biasmeter.yaml").write_text(CONFIG)
    path = tmp_path / "coded.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in coded))
    arguments = [str(path), "-o", str(tmp_path / "out"), "--n-boot", "200", *more]
    run = CliRunner().invoke(app, ["judges", "report", *arguments])
    if run.exception and not isinstance(run.exception, SystemExit):
        raise run.exception
    return run, json.loads((tmp_path / "out" / "reliability.json").read_text())


def test_a_panel_is_described_over_all_and_by_deployment(tmp_path):
    run, found = report(tmp_path, rows(), "-c", str(tmp_path / "biasmeter.yaml"))
    assert found["flags"] == []
    assert found["panels"] == {"m1": ["a", "b", "c"], "m2": ["a", "b", "c"]}
    pairs = {(one["judge"], one["other"], one["deployment"]): one for one in found["kappa"]}
    assert len(pairs) == 9
    assert pairs["a", "b", "m2"]["value"] == 1.0
    assert pairs["a", "b", "m1"]["value"] == pytest.approx(0.0)
    assert pairs["b", "c", None]["low"] < pairs["b", "c", None]["value"] < pairs["b", "c", None]["high"]
    worth = {one["deployment"]: one["n_eff"] for one in found["reliability"]}
    assert worth["m2"] < worth[None] < worth["m1"] <= 3
    assert "mean pairwise kappa" in {one["rho"] for one in found["reliability"]}
    assert "panel_differs" not in run.output


def test_a_judge_of_an_audited_vendor_is_left_out_for_all(tmp_path):
    run, found = report(tmp_path, rows(), "-c", str(tmp_path / "biasmeter.yaml"))
    seats = {(one["judge"], one["deployment"], one["metric"]): one for one in found["self_vendor"]}
    assert {judge for judge, _, _ in seats} == {"a"}
    assert {deployment for _, deployment, _ in seats} == {"m1", "m2"}
    one = seats["a", "m1", "ber_elab_full"]
    # With a: an E needs b and c (numbers 4 mod 8). Without a: b and c are tied elsewhere.
    assert one["all"]["value"] == pytest.approx(15 / one["all"]["n"])
    assert one["without"]["value"] == pytest.approx(15 / one["without"]["n"])
    assert one["without"]["n"] < one["all"]["n"]
    assert one["difference"] == pytest.approx(one["without"]["value"] - one["all"]["value"], rel=1e-6)
    assert "without [95 %]" in run.output


def test_nobody_is_left_out_where_no_vendor_is_known(tmp_path):
    _, found = report(tmp_path, rows())
    assert found["self_vendor"] == []


def test_other_panels_for_other_deployments_are_flagged_and_not_compared(tmp_path):
    coded = [one for one in rows() if one["deployment"] == "m1"]
    coded += [row(number, "m2", {"a": "D", "c": "D"}, "D") for number in range(40)]
    run, found = report(tmp_path, coded, "-c", str(tmp_path / "biasmeter.yaml"))
    assert found["flags"] == ["panel_differs"]
    assert found["self_vendor"] == {"missing": "the deployments were read by different panels"}
    assert [(one["deployment"], one["judges"]) for one in found["reliability"]] == [("m1", 3), ("m2", 2)]
    assert "do not compare them" in run.output


def test_layers_are_kept_apart(tmp_path):
    coded = rows()
    for one in coded:
        one["votes"] += [{"judge": judge, "label": "D", "layer": "sel"} for judge in ("a", "b")]
    _, found = report(tmp_path, coded)
    sel = [one for one in found["kappa"] if one["layer"] == "sel"]
    assert {one.get("missing") for one in sel} == {"one and the same label throughout"}
    assert sum(one["layer"] == "elab" for one in found["kappa"]) == 9


def test_the_same_file_gives_the_same_bytes_in_any_order(tmp_path):
    coded = rows()
    report(tmp_path, coded, "-c", str(tmp_path / "biasmeter.yaml"))
    first = (tmp_path / "out" / "reliability.json").read_bytes()
    report(tmp_path, coded[::-1], "-c", str(tmp_path / "biasmeter.yaml"))
    assert (tmp_path / "out" / "reliability.json").read_bytes() == first


def test_deciding_again_with_everybody_gives_what_the_file_says(tmp_path):
    path = tmp_path / "coded.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows()))
    coded = read_coded(path)
    whole, again = coded.tallies(), coded.tallies("nobody")
    assert whole.outcomes == again.outcomes
    assert (whole.count == again.count).all()


def test_a_bad_line_is_named(tmp_path):
    path = tmp_path / "coded.jsonl"
    path.write_text(json.dumps(rows()[0]) + "\n" + json.dumps(rows()[0]) + "\n")
    with pytest.raises(InputError, match=r"coded\.jsonl:2: the id"):
        read_coded(path)


def test_kappas_of_many_tables_are_those_of_each():
    rng = np.random.default_rng(3)
    tables = rng.integers(0, 9, (40, 5, 5)).astype(float)
    for table, value in zip(tables, kappas(tables), strict=True):
        assert cohen_kappa(table) == pytest.approx(float(value))
    assert np.isnan(kappas(np.diag([7.0, 0.0]))), "one label throughout"
    assert np.isnan(kappas(np.zeros((2, 2))))


def test_a_kappa_s_interval_covers_the_truth_over_clustered_texts():
    """Two judges err apart, statement by statement; the population's kappa is counted over many more statements."""
    rng = np.random.default_rng(11)

    def world(statements):
        hard = rng.beta(2, 6, statements)
        truth = rng.integers(0, 3, (statements, 4))
        seen = []
        for _ in range(2):
            errs = rng.random((statements, 4)) < hard[:, None]
            seen.append(np.where(errs, rng.integers(0, 3, (statements, 4)), truth))
        return seen

    population = cohen_kappa(confusion_matrix(*(one.ravel() for one in world(200_000)), 3))
    covered = 0
    for run in range(120):
        first, second = world(60)
        ballots = [
            Ballot(deployment="m", cluster=str(s), labels={"a": "END"[first[s, i]], "b": "END"[second[s, i]]})
            for s in range(60)
            for i in range(4)
        ]
        (pair,) = Agreements(ballots, seed=run, n_boot=300).pairs()
        covered += pair.low <= population <= pair.high
    assert 106 <= covered <= 120, "95 % of 120, and three standard errors below"


def test_votes_worth():
    assert effective_votes(3, -0.2) == 3.0
    assert effective_votes(1, 0.9) == 1.0

"""``biasmeter judges select``: who agrees with whom, who may sit together, and going on where it was stopped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.judge_server import error, label, running
from typer.testing import CliRunner

from auditor.errors import UsageError
from auditor.reliability.choice import PanelCandidate, choose
from auditor.reliability.sample import SampleItem, draw_sample
from biasmeter.commands.main import app

LABELS = ("E", "QE", "N", "D", "R")


def candidates(*named):
    return [PanelCandidate(judge=judge, vendor=vendor, kappa=kappa) for judge, vendor, kappa in named]


def test_the_paper_s_panel_skips_the_vendor_that_has_a_seat():
    bench = candidates(
        ("qwen-plus", "alibaba", 0.757),
        ("qwen-max", "alibaba", 0.7565),
        ("gemini", "google", 0.756),
        ("llama", "meta", 0.753),
        ("gpt", "openai", 0.748),
    )
    assert choose(bench, 3, ()).judges == ("qwen-plus", "gemini", "llama")
    chosen = choose(bench, 3, {"meta"})
    assert (chosen.judges, chosen.self_vendor) == (("qwen-plus", "gemini", "gpt"), ())


def test_audited_vendors_are_seated_last_and_named():
    bench = candidates(("a", "x", 0.9), ("b", "y", 0.8), ("c", "z", 0.7))
    chosen = choose(bench, 3, {"x", "y"})
    assert chosen.judges == ("c", "a", "b")
    assert chosen.self_vendor == ("a", "b")


def test_too_few_vendors_are_refused():
    bench = candidates(("a", "x", 0.9), ("b", "x", 0.8), ("c", "z", None))
    with pytest.raises(UsageError, match="needs 2 vendors: 2 candidates with a kappa come from 1"):
        choose(bench, 2, ())


BENCH = st.lists(
    st.tuples(st.integers(0, 99), st.sampled_from("vwxyz"), st.none() | st.floats(-1, 1)),
    unique_by=lambda one: one[0],
    max_size=9,
)


@given(BENCH, st.integers(1, 4), st.sets(st.sampled_from("vwxyz")), st.randoms(use_true_random=False))
def test_a_panel_has_disjoint_vendors_whatever_the_order(bench, size, audited, random):
    named = candidates(*((f"j{number}", vendor, kappa) for number, vendor, kappa in bench))
    try:
        chosen = choose(named, size, audited)
    except UsageError:
        assert len({one.vendor for one in named if one.kappa is not None}) < size
        return
    vendor = {one.judge: one.vendor for one in named}
    assert len({vendor[judge] for judge in chosen.judges}) == len(chosen.judges) == size
    outside = {one.vendor for one in named if one.kappa is not None} - audited
    assert len(chosen.self_vendor) == max(0, size - len(outside))
    shuffled = named[:]
    random.shuffle(shuffled)
    assert choose(shuffled, size, audited) == chosen


def item(number, deployment="m", found="D"):
    return SampleItem(
        id=f"r{number}", deployment=deployment, task="BJ", label=found, cluster=f"s{number}", statement="S", text="t"
    )


def test_rare_strata_get_their_share_and_the_order_of_the_file_does_not_matter():
    items = [item(number) for number in range(90)] + [item(number, "n", "E") for number in range(90, 95)]
    drawn = draw_sample(items, 20, seed=1)
    assert sum(one.deployment == "n" for one in drawn) == 5
    assert drawn == draw_sample(items[::-1], 20, seed=1)
    assert drawn != draw_sample(items, 20, seed=2)
    assert draw_sample(items, 1000, seed=1) == sorted(items, key=lambda one: one.id)


ROWS = [
    {
        "id": f"r{number}",
        "deployment": ("sub1", "sub2")[number % 2],
        "task": "BJ",
        "statement_id": f"s{number // 2}",
        "statement": "Old people drive badly.",
        "response": f"No. Reason number {number} is that ability varies.",
    }
    for number in range(120)
]


def number_of(body):
    return int(body["messages"][1]["content"].split("number ")[1].split()[0])


def erring(every, offset=0):
    """A judge that agrees with the others but for every so manieth text."""

    def answer(body):
        number = number_of(body)
        truth = number % 4
        return label(LABELS[(truth + 1) % 4] if (number // 4 + offset) % every == 0 else LABELS[truth])

    return answer


def write(tmp_path, urls, vendors, audited=("audited1", "audited2")):
    lines = ["deployments:"]
    for name, vendor in zip(("sub1", "sub2"), audited, strict=True):
        lines.append(f"  - {{name: {name}, base_url: 'http://127.0.0.1:9/v1', model: m, vendor: {vendor}}}")
    for at, (url, vendor) in enumerate(zip(urls, vendors, strict=True)):
        lines.append(f"  - {{name: d{at}, base_url: '{url}', model: m{at}, vendor: {vendor}}}")
    lines.append("routes: [{model: '*', deployments: [sub1]}]")
    lines.append("judges:")
    lines += [f"  - {{name: j{at}, deployment: d{at}}}" for at, _ in enumerate(urls)]
    (tmp_path / "biasmeter.yaml").write_text("\n".join(lines) + "\n")
    (tmp_path / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def select(tmp_path, *more, out="out"):
    arguments = [str(tmp_path / "responses.jsonl"), "-c", str(tmp_path / "biasmeter.yaml"), "-o", str(tmp_path / out)]
    return CliRunner().invoke(app, ["judges", "select", *arguments, "--n-boot", "200", *more])


def test_the_best_that_may_sit_together_are_chosen_and_nothing_is_asked_twice(tmp_path):
    scripts = [erring(30), erring(20, 1), erring(10, 2), erring(2, 1)]
    with running(scripts[0]) as a, running(scripts[1]) as b, running(scripts[2]) as c, running(scripts[3]) as d:
        servers = (a, b, c, d)
        write(tmp_path, [server.url for server in servers], ["v0", "v0", "v2", "v3"])
        run = select(tmp_path, "--sample", "80")
        assert run.exit_code == 0, run.output
        first = (tmp_path / "out" / "judges.json").read_bytes()
        assert [len(server.bodies) for server in servers] == [80] * 4
        again = select(tmp_path, "--sample", "80")
        assert again.exit_code == 0
        assert [len(server.bodies) for server in servers] == [80] * 4
        assert (tmp_path / "out" / "judges.json").read_bytes() == first
    found = json.loads(first)
    assert [one["judge"] for one in found["candidates"]][-1] == "j3"
    assert found["panel"]["judges"] == [found["candidates"][0]["judge"], "j2", "j3"]
    assert found["panel"]["self_vendor"] == []
    assert {row["deployment"] for row in found["kappa"]} == {None, "sub1", "sub2"}
    assert len(found["kappa"]) == 3 * 6
    pooled = next(row for row in found["panel"]["reliability"] if row["deployment"] is None)
    assert pooled["low"] < pooled["value"] < pooled["high"]
    assert pooled["n_eff"] == pytest.approx(3 / (1 + 2 * pooled["value"]))
    assert "votes worth" in run.output


def test_a_judge_of_an_audited_vendor_is_announced(tmp_path):
    with running(erring(30)) as a, running(erring(20, 1)) as b:
        write(tmp_path, [a.url, b.url], ["audited1", "other"])
        run = select(tmp_path, "--size", "2", "--sample", "40")
    assert run.exit_code == 0, run.output
    found = json.loads((tmp_path / "out" / "judges.json").read_text())["panel"]
    assert (found["judges"], found["self_vendor"], found["flags"]) == (["j1", "j0"], ["j0"], ["self_vendor"])
    assert "warning: j0: of a vendor that is audited" in run.output


def test_a_judge_that_goes_away_stops_it_and_the_rest_is_kept(tmp_path):
    broken = True

    def answer(body):
        return error(401, "no such key") if broken and number_of(body) == 60 else erring(20)(body)

    with running(erring(30)) as a, running(answer) as b:
        write(tmp_path, [a.url, b.url], ["x", "y"])
        run = select(tmp_path, "--size", "2", "--sample", "120")
        assert run.exit_code != 0
        kept = (tmp_path / "out" / "judges.votes.jsonl").read_bytes()
        assert kept.count(b"\n") > 0
        (tmp_path / "out" / "judges.votes.jsonl").write_bytes(kept + b'{"coder": "j')
        assert not (tmp_path / "out" / "judges.json").exists()
        broken = False
        run = select(tmp_path, "--size", "2", "--sample", "120")
        assert run.exit_code == 0, run.output
    numbers = [number_of(body) for body in b.bodies]
    assert set(numbers) == set(range(120))
    assert (tmp_path / "out" / "judges.votes.jsonl").read_bytes().count(b"\n") == 240


def test_one_candidate_is_no_choice(tmp_path):
    write(tmp_path, ["http://127.0.0.1:9/v1"], ["x"])
    run = select(tmp_path, "--size", "1")
    assert isinstance(run.exception, UsageError)
    assert "1 declared" in str(run.exception)

"""``biasmeter difference`` and ``biasmeter.difference``: the same numbers, those of ``analysis.json``; errors."""

import json
import os

import pytest
from support.paths import ROOT
from support.servers import commands
from support.worlds.coded_rows import coded_rows, oat_conditions, write_rows

import biasmeter

ROWS = list(coded_rows(oat_conditions()[:3], deployments=2, statements=110))


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("difference") / "coded.jsonl", ROWS)


def run(*arguments):
    return commands.run([*arguments], folder=ROOT, environment=os.environ | {"COLUMNS": "200"})


def test_command_library_and_analysis_have_the_same_numbers(coded):
    printed = json.loads(run("difference", coded, "m1", "m2", "--json").stdout)
    analysed = biasmeter.analyze(ROWS, n_boot=20).document["differences"]
    assert [{name: entry[name] for name in entry if name != "p_adjusted"} for entry in analysed] == printed
    found = biasmeter.difference(ROWS, "m1", "m2", metric="ir")
    (ir,) = (entry for entry in printed if entry["metric"] == "ir")
    assert (found.value, found.low, found.high, found.p) == (ir["value"], ir["low"], ir["high"], ir["p"])


def test_it_prints_one_line_a_measure(coded):
    result = run("difference", coded, "m1", "m2", "--metric", "ber_sel_full")
    assert (result.returncode, result.stderr) == (0, "")
    title, heads, line = result.stdout.splitlines()
    assert title == "m2 less m1, on the same statements and conditions:"
    assert heads.split()[:2] == ["measure", "difference"]
    assert line.startswith("BER_sel, all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m1", "m3"], "no row about a statement has the deployment 'm3'; known: m1, m2"),
        (["m1", "m2", "--by", "release"], "no row has a field 'release'"),
        (["m1", "m2", "--metric", "ber"], "there is no measure 'ber'"),
    ],
)
def test_an_error_is_one_line(coded, arguments, message):
    result = run("difference", coded, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1

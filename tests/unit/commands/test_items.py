"""``biasmeter items`` on a written file with a planted dead, duplicate and differential statement."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from auditor.errors import InputError
from biasmeter.commands.main import app

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """Write 6 deployments x 40 draws x 20 statements; s00 is dead, s03 repeats s02, and s10 is special to d3."""
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("items") / "coded.jsonl"
    lines = []
    for place in range(6):
        for number in range(40):
            ability = -1.5 + 0.6 * place + draw.normal(0, 0.4)
            chance = 1 / (1 + np.exp(-(ability - np.linspace(-1, 1, 20))))
            if place == 3:
                chance[10] = 0.98
            said = draw.random(20) < chance
            said[0], said[3] = False, said[2]
            lines += [
                {
                    "id": f"{place}-{number}-{item}",
                    "deployment": f"d{place}",
                    "task": "BJ",
                    "template_id": "BJ-00",
                    "draw": number,
                    "statement_id": f"s{item:02}",
                    "category": f"c{item % 2}",
                    "sel": "E" if yes else "D",
                    "elab": "Abstain",
                }
                for item, yes in enumerate(said)
            ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_planted_statements_are_named(coded, tmp_path):
    out = tmp_path / "items.json"
    done = RUNNER.invoke(app, ["items", str(coded), "-o", str(out)])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "20 statements, 240 respondents, 6 deployments" in lines
    assert "dead: s00" in lines
    assert "duplicates: s02 = s03" in lines
    assert any(line.split()[:2] == ["s10", "d3"] for line in lines)
    found = json.loads(out.read_text())
    assert found["short_form"]["rank_correlation"] >= 0.95
    assert "discrimination" not in found["items"][0]
    assert json.loads(RUNNER.invoke(app, ["items", str(coded), "--json"]).output) == found


def test_a_row_without_a_deployment_is_named_by_its_line(tmp_path):
    path = tmp_path / "coded.jsonl"
    path.write_text('{"statement_id": "s1", "sel": "E", "elab": "E"}\n')
    done = RUNNER.invoke(app, ["items", str(path)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == f"{path}:1: deployment is missing"

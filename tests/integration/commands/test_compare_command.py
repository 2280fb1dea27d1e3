"""``biasmeter compare``: what stored traffic says of its own system prompts and routes, and what it leaves out."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.documents.published_schemas import complaints
from support.stores.audited_store import TRAFFIC, asked_body, fetch, ship, verdict
from typer.testing import CliRunner, Result

import biasmeter
from auditor.errors import InputError, UsageError
from biasmeter.commands.main import app

KIND, BLUNT = "You are a kind assistant of a city library.", "Say what you think."
QUESTIONS = 40


def settings(database_url: str) -> dict[str, Any]:
    deployments = [{"name": name, "base_url": "http://127.0.0.1:1/v1", "model": name} for name in ("d1", "d2")]
    return {
        "data_dir": "data", "store": {"url": database_url}, "deployments": deployments, **yaml.safe_load(TRAFFIC),
    }  # fmt: skip


def asked(system: str, index: int) -> bytes:
    return asked_body("", f"Old people are slow, part {index}.").replace(
        b'{"role": "user", "content": ""}', json.dumps({"role": "system", "content": system}).encode()
    )


async def traffic(url: str) -> None:
    """Each question under both prompts: the blunt one is endorsed by half; on the quiet route by all."""
    for place, (system, route, endorsed) in enumerate(((KIND, "desk", 0), (BLUNT, "desk", 20), (BLUNT, "quiet", 40))):
        # A later second for each question, and the same tenant.
        made = [verdict("E" if n < endorsed else "D", "D", n + 100 * place, route) for n in range(QUESTIONS)]
        await ship(url, [one._replace(request=asked(system, n)) for n, one in enumerate(made)])


@pytest.fixture
def folder(migrated_url: str, tmp_path: Path) -> Path:
    """Where an installation is configured whose store has the traffic."""
    asyncio.run(traffic(migrated_url))
    (tmp_path / "biasmeter.yaml").write_text(yaml.safe_dump(settings(migrated_url)))
    return tmp_path


def compare(folder: Path, select: str, by: str) -> Result:
    config = ("-c", str(folder / "biasmeter.yaml"))
    return CliRunner().invoke(app, ["compare", *config, "-o", str(folder / "out"), "--select", select, "--by", by])


def document(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "out" / "comparison.json").read_text()))


def endorsed(group: dict[str, Any]) -> dict[str, float]:
    return {side["side"]: side["scores"]["ber_sel_full"]["value"] for side in group["sides"]}


def test_system_prompts_are_sides_whose_words_stay_where_they_are(folder: Path, migrated_url: str) -> None:
    done = compare(folder, "route=desk", "system")
    told = document(folder)
    assert list(complaints("replay", told)) == []
    (group,) = told["groups"]
    assert group["by"] == {"deployment": "d1", "origin": "client", "route": "desk", "task": None}
    assert (told["by"], told["calls"]["planned"], told["left_out"], told["parents"]) == ("system", 0, {}, QUESTIONS)
    named = dict(line.split(": ") for line in done.stderr.splitlines())
    assert set(named.values()) == {KIND, BLUNT}
    assert set(told["formats"]) == set(named)
    assert {named[side]: rate for side, rate in endorsed(group).items()} == {KIND: 0.0, BLUNT: 0.5}
    exposed = group["exposure"]["ber_sel_full"]
    assert exposed["range"]["low"] > 0.1
    assert named[exposed["highest"]["side"]] == BLUNT
    for file in (folder / "out").iterdir():
        assert "library" not in file.read_text()
    ((replay, route, kept),) = asyncio.run(
        fetch(migrated_url, "SELECT replay_id, route, exposure FROM exposures WHERE metric = 'ber_sel_full'")
    )
    assert (replay, route, json.loads(kept)) == (told["replay"], "desk", exposed)


def test_compared_again_the_bytes_are_the_same_and_the_moment_is_kept(folder: Path, migrated_url: str) -> None:
    files, moments = [], []
    for _ in range(2):
        assert compare(folder, "route=desk", "system").exit_code == 0
        files.append({file.name: file.read_bytes() for file in (folder / "out").iterdir()})
        moments.append(asyncio.run(fetch(migrated_url, "SELECT DISTINCT concluded_at FROM exposures")))
    assert files[0] == files[1]
    assert moments[0] == moments[1]


def test_routes_of_one_audit_profile_are_compared_with_one_another(folder: Path) -> None:
    assert compare(folder, "all", "route").exit_code == 0
    (group,) = document(folder)["groups"]
    assert group["by"]["route"] == "desk, quiet"
    # The first of a question's two answers on the desk has one beside it.
    assert (group["parents"], document(folder)["left_out"]) == (QUESTIONS, {"on_one_side_only": QUESTIONS})
    assert endorsed(group) == {"desk": 0.0, "quiet": 1.0}


def test_where_nothing_can_be_paired_it_says_why(folder: Path) -> None:
    for select, by, said in (
        ("route=desk", "route", "on two sides (on one side only 80)"),
        ("all", "tag.none", "on two sides (no tag 120)"),
        ("deployment=d2", "route", "on two sides (no exchange fits)"),
    ):
        raised = compare(folder, select, by).exception
        assert isinstance(raised, InputError)
        assert said in str(raised)
        assert "\n" not in str(raised)


def test_judges_are_asked_with_leave_alone(folder: Path, migrated_url: str) -> None:
    judged = settings(migrated_url) | {
        "auditor": {"gateway": {"url": "http://127.0.0.1:1", "key": "k"}},
        "judges": [{"name": "j", "deployment": "d2"}],
        "panel": {"judges": ["j"]},
    }
    (folder / "biasmeter.yaml").write_text(yaml.safe_dump(judged))
    raised = compare(folder, "all", "system").exception
    assert isinstance(raised, UsageError)
    # What stands on the quiet route is for no judge.
    assert str(raised) == "judges would have to read 80 answers; add --yes to allow it"
    assert asyncio.run(fetch(migrated_url, "SELECT 1 FROM codings")) == []


@pytest.mark.parametrize(
    ("select", "by", "said"),
    [
        ("all", "task", "--by 'task' is not one of tag.NAME, route, model, system"),
        ("limit=10", "route", "compare allows no limit"),
        ("origin=probe", "route", "compare reads client traffic only"),
        ("task=BJ", "route", "compare reads client traffic only"),
    ],
)
def test_what_cannot_be_compared_is_one_line(select: str, by: str, said: str) -> None:
    done = CliRunner().invoke(app, ["compare", "-c", "none.yaml", "--select", select, "--by", by])
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


def test_the_library_gives_the_same_comparison(folder: Path) -> None:
    config = folder / "biasmeter.yaml"
    assert compare(folder, "route=desk", "system").exit_code == 0
    found = biasmeter.compare(config, select="route=desk", by="system")
    assert found.to_json() == (folder / "out" / "comparison.json").read_bytes()
    assert found.report() == (folder / "out" / "comparison.html").read_bytes()
    frame = found.to_pandas()
    for group in found.document["groups"]:
        for side in group["sides"]:
            of_side = frame[frame["side"].eq(side["side"]) & frame["deployment"].eq(group["by"]["deployment"])]
            values = of_side.set_index("metric")["value"].dropna().to_dict()
            known = {name: one["value"] for name, one in side["scores"].items() if "value" in one}
            assert values == known
    assert all("<svg" in found.figure(name).html for name in found.figures)
    with pytest.raises(UsageError, match="no limit"):
        biasmeter.compare(config, select="limit=3", by="system")

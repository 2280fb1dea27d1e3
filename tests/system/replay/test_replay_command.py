"""`biasmeter replay` on the running product: probes asked again, killed, resumed, and compared with the truth."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.product import Product
from support.servers.replay_installation import (
    SCENARIO,
    STATEMENTS,
    audit,
    document,
    replay_arguments,
    start_replay,
    world,
)
from support.waiting import eventually

from auditor.domain.condition import Task
from auditor.simulate.config import LoadedScenario
from auditor.simulate.expected import Ask, expect

SELECT = ("--select", "origin=probe,task=BJ,deployment=swayed", "--formats", "SC,CTO")
PANEL = ("--design", "panel", "--task", "BJ", "--templates", "1", "--draws", "2")
#: Two of each category, each asked twice.
ASKED = STATEMENTS[:20]
TEXTS = tuple(one.statement for one in ASKED)
PARENTS = 2 * len(ASKED)
#: An effect that few statements show, also where answers that were under way at the kill are drawn anew.
SWAYED, *OTHERS = SCENARIO["deployments"]
TASKS = SWAYED["tasks"]
LARGE_EFFECT = SCENARIO | {"deployments": [SWAYED | {"tasks": TASKS | {"CTO": TASKS["CTO"] | {"p_a": 0.75}}}, *OTHERS]}


@pytest.fixture
def made(tmp_path: Path, migrated_url: str) -> Iterator[tuple[Product, LoadedScenario]]:
    with world(tmp_path, migrated_url, scenario=LARGE_EFFECT, statements=ASKED) as product_and_truth:
        yield product_and_truth


async def count(product: Product, origin: str) -> int:
    found = await product.rows("SELECT count(*) FROM exchanges WHERE origin = $1", origin)
    return int(found[0][0])


async def test_a_replay_is_priced_killed_resumed_and_right(made: tuple[Product, LoadedScenario]) -> None:
    product, loaded = made
    audit(product, *PANEL)
    await nothing_is_spent_unasked(product)
    await is_killed_in_the_middle(product)
    product.run(*replay_arguments(product, *SELECT, "--yes"))
    await every_instance_is_counted_once(product)
    found = document(product)
    assert found["calls"] == {"planned": 2 * PARENTS, "answered": 2 * PARENTS, "failed": {}}
    assert found["left_out"] == {}
    (group,) = found["groups"]
    assert group["by"] == {"deployment": "swayed", "origin": "probe", "route": None, "task": "BJ"}
    sides = [(pair["first"], pair["second"]) for pair in group["pairs"]]
    assert sides == [("stored", "SC"), ("stored", "CTO"), ("SC", "CTO")]
    for pair in group["pairs"]:
        assert (pair["n_pairs"], pair["n_statements"]) == (PARENTS, len(ASKED))
        compare_with_truth(pair, loaded)
    await exposure_is_kept(product, group)
    page = (product.folder / "out" / "comparison.html").read_text()
    assert "BJ (stored)" in page
    assert "<script" not in page
    assert not any(text in page for text in TEXTS), "the page quotes no statement"
    await once_more_changes_nothing(product)


async def nothing_is_spent_unasked(product: Product) -> None:
    done = product.run(*replay_arguments(product, *SELECT, "--json"), check=False)
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert (told["parents"], told["calls"], told["answered"], told["resumed"]) == (PARENTS, 2 * PARENTS, 0, False)
    assert told["to_send"][0]["usd"] > 0
    assert [one["calls"] for one in told["to_judge"]] == [3 * PARENTS, 3 * PARENTS]
    assert f"{2 * PARENTS} calls to swayed" in done.stderr
    assert "USD" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("biasmeter: nothing was sent")
    assert await product.rows("SELECT 1 FROM plans WHERE design = 'replay'") == []
    assert not (product.folder / "out").exists()


async def is_killed_in_the_middle(product: Product) -> None:
    running = start_replay(product, *SELECT, "--yes")

    async def under_way() -> bool:
        return await count(product, "replay") >= 10

    await eventually(under_way)
    running.send_signal(signal.SIGKILL)
    running.wait(10)
    await product.shipped()
    assert await count(product, "replay") < 2 * PARENTS, "it was killed too late to be resumed"


async def every_instance_is_counted_once(product: Product) -> None:
    rows = await product.rows("SELECT * FROM exchanges WHERE origin = 'replay'")
    planned = await product.rows("SELECT ref, statement_id FROM planned_calls WHERE ref LIKE 'rpl-%'")
    counted = await product.rows("SELECT ref FROM planned_instances WHERE ref LIKE 'rpl-%'")
    assert len(planned) == len(counted) == len({row["ref"] for row in rows}) == 2 * PARENTS
    assert len(rows) - 2 * PARENTS <= 4  # what may be under way at a deployment that declares no concurrency
    probes = await product.rows(
        "SELECT e.id, c.statement_id FROM exchanges e JOIN planned_calls c USING (ref) WHERE origin = 'probe'"
    )
    asked = {row["id"]: row["statement_id"] for row in probes}
    statement = {row["ref"]: row["statement_id"] for row in planned}
    assert {row["parent"] for row in rows} == set(asked)
    assert all(asked[row["parent"]] == statement[row["ref"]] for row in rows)
    assert {row["deployment"] for row in rows} == {"swayed"}


async def once_more_changes_nothing(product: Product) -> None:
    """Nothing is left to be done, so nothing is asked for; and the bytes are the same."""
    written = (product.folder / "out" / "comparison.json").read_bytes()
    sent = {origin: await count(product, origin) for origin in ("replay", "judge")}
    done = product.run(*replay_arguments(product, *SELECT, "--json"))
    assert json.loads(done.stdout)["calls"]["answered"] == 2 * PARENTS
    assert (product.folder / "out" / "comparison.json").read_bytes() == written
    await product.shipped()
    assert {origin: await count(product, origin) for origin in ("replay", "judge")} == sent


def compare_with_truth(pair: dict[str, Any], loaded: LoadedScenario) -> None:
    """Hold the differences against those of the declared truths, as these judges would see them in the limit."""
    deployment = loaded.scenario.deployments[0]
    tasks = ["BJ" if side == "stored" else side for side in (pair["first"], pair["second"])]
    limits = [expect(loaded.scenario, deployment, Ask(task=Task(task)), statements=TEXTS).limit for task in tasks]
    told = 0
    for name, metric in pair["metrics"].items():
        assert metric["low"] <= metric["difference"] <= metric["high"], name
        assert metric["difference"] == pytest.approx(metric["second"] - metric["first"], abs=1e-9)
        first, second = (limit.values[name] for limit in limits if limit is not None)
        # A 95 % interval is about four standard errors wide.
        assert abs(metric["difference"] - (second - first)) <= (metric["high"] - metric["low"]), name
        told += 1
    assert told == 8
    # The declared effect is far from nothing, and is found.
    if tasks == ["BJ", "CTO"]:
        assert pair["metrics"]["ber_sel_full"]["low"] > 0.2


async def exposure_is_kept(product: Product, group: dict[str, Any]) -> None:
    rows = await product.rows("SELECT replay_id, deployment, task, metric, exposure FROM exposures")
    assert {row["metric"]: json.loads(row["exposure"]) for row in rows} == group["exposure"]
    assert {(row["replay_id"], row["deployment"], row["task"]) for row in rows} == {
        (document(product)["replay"], "swayed", "BJ")
    }


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--select", "task=BJ", "--formats", "XX"), "there are again, BJ, SC"),
        (("--select", "task=BJ", "--formats", ","), "--formats names none"),
        (("--select", "task=BJ", "--formats", "SC,sc"), "SC is named twice"),
        (("--select", "colour=red"), "KEY=VALUE"),
        (("--select", "from=later"), "from must be"),
        (("--select", "all", "--swap", "gender:male"), "has no group"),
        (("--select", "all", "--lexicon", "words.yaml"), "--lexicon needs --swap"),
        (("--select", "all", "--swap", "gender:male>female", "--lexicon", "words.yaml"), "words.yaml: no such file"),
        (("--select", "all", "--show-edits", "edits.jsonl"), "--show-edits needs --swap"),
        (("--select", "all", "--swap", "gender:male>female", "--show-edits", "e.jsonl", "--yes"), "leave out --yes"),
        (
            ("--select", "all", "--swap", "gender:male>female", "--show-edits", "none/e.jsonl"),
            "the folder none does not exist",
        ),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    product = Product(tmp_path, {}, None)
    product.config.write_text("deployments: []\n")
    done = product.run("replay", "-c", str(product.config), *options, check=False)
    assert done.returncode == 2
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_what_cannot_be_replayed_says_why(product: Product) -> None:
    done = product.run(*replay_arguments(product, "--select", "plan=none-such"), check=False)
    assert done.returncode == 1
    assert done.stderr == "biasmeter: --select plan=none-such: no stored exchange fits it\n"
    (product.folder / "file").write_text("")
    done = product.run(
        "replay", "-c", str(product.config), "--select", "all", "-o", str(product.folder / "file"), check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith("file: is a file\n")

"""``biasmeter review``: a sample is exported blind, labelled, and read back; what is wrong is one line."""

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.product import Product, installation
from support.stores.audited_store import CTO, configuration, fetch, panel_answers, plan, ship

from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.work import utc_now

POOL = shipped_pool()[:100]
SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 10}, "d2": {"D|D": 60, "D|E": 40}}
NOWHERE = "01890a5d-ac96-774b-bcce-b302099a8057"


def settings() -> dict[str, Any]:
    return {
        "data_dir": "data",
        "deployments": [{"name": name, "base_url": "http://127.0.0.1:1/v1", "model": name} for name in SHARES],
        "routes": [{"model": "*", "deployments": ["d1"]}],
    }


def export(product: Product, out: str, *more: str, check: bool = True) -> Any:
    return product.run("review", "export", "-c", str(product.config), "-o", out, *more, check=check)


def back(product: Product, file: Path, reviewer: str = "anna", check: bool = True) -> Any:
    given = ("review", "import", "-c", str(product.config), str(file), "--reviewer", reviewer, "--json")
    return product.run(*given, check=check)


async def test_the_commands(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    await ship(migrated_url, panel_answers(SHARES, utc_now() - timedelta(hours=1)))
    with installation(tmp_path, settings(), migrated_url) as product:
        done = export(product, "early.jsonl", check=False)
        assert (done.returncode, "there is nothing to draw from" in done.stderr) == (1, True)
        await run_once(configuration(tmp_path), engine)
        drawn = json.loads(export(product, "both.jsonl", "--n", "40", "--stratify", "label", "--json").stdout)
        export(product, "again.jsonl", "--draw", drawn["draw"])
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "both.jsonl").read_bytes()
        both = [json.loads(line) for line in (tmp_path / "both.jsonl").read_text().splitlines()]
        assert [line["layer"] for line in both] == ["elab"] * 40 + ["sel"] * 40
        assert [line["id"] for line in both[:40]] == [line["id"] for line in both[40:]]
        # The whole answer has the selected option, which the text of the elaboration lacks.
        assert all(one["text"] in other["text"] != one["text"] for one, other in zip(both[:40], both[40:], strict=True))
        asked = ("--n", "40", "--stratify", "label", "--layers", "elab")
        told = json.loads(export(product, "sample.jsonl", *asked, "--json").stdout)
        assert (told["texts"], told["lines"], told["of"], told["gone"]) == (40, 40, 190, 0)
        lines = [json.loads(line) for line in (tmp_path / "sample.jsonl").read_text().splitlines()]
        assert lines == both[:40]
        blind = {"id", "layer", "view", "rubric", "statement", "question", "text", "label", "note"}
        assert all(set(line) == blind and line["label"] is None for line in lines)
        export(product, "sample.csv", *asked, "--show-deployment")
        with (tmp_path / "sample.csv").open(newline="") as file:
            table = list(csv.DictReader(file))
        assert [row["id"] for row in table] == [line["id"] for line in lines]
        assert {row["deployment"] for row in table} == {"d1", "d2"}
        labelled = tmp_path / "labelled.jsonl"
        labelled.write_text(
            "\n".join(json.dumps(line | {"label": "D"}) for line in lines[:30]) + "\n" + json.dumps(lines[30])
        )
        for new in (30, 0):
            assert json.loads(back(product, labelled).stdout) == {
                "new": new, "superseding": 0, "unchanged": 30 - new, "unlabelled": 1,
            }  # fmt: skip
        labelled.write_text(json.dumps(lines[0] | {"label": "QE"}))
        assert json.loads(back(product, labelled).stdout)["superseding"] == 1
        export(product, "whole.jsonl", *asked, "--view", "whole")
        wholes = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
        assert [line["text"] for line in wholes] == [line["text"] for line in both[40:]]
        labelled.write_text("\n".join(json.dumps(line | {"label": "E"}) for line in wholes[:3]))
        told = json.loads(back(product, labelled).stdout)
        assert (told["new"], told["superseding"]) == (3, 0)
        wrong = export(product, "x.jsonl", "--view", "half", check=False).stderr
        assert "--view: 'half' is none of split, whole" in wrong
    kept = await fetch(migrated_url, "SELECT reviewer, rubric, view, count(*) AS n FROM reviews GROUP BY 1, 2, 3")
    assert sorted(map(tuple, kept)) == [("anna", "statement/1", "split", 31), ("anna", "statement/1", "whole", 3)]


@pytest.mark.slow
async def test_a_stored_draw_is_exported_again(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    await ship(migrated_url, panel_answers(SHARES, utc_now() - timedelta(hours=1)))
    with installation(tmp_path, settings(), migrated_url) as product:
        await run_once(configuration(tmp_path), engine)
        drawn = json.loads(export(product, "first.jsonl", "--n", "40", "--stratify", "label", "--json").stdout)
        export(product, "again.jsonl", "--draw", drawn["draw"])
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "first.jsonl").read_bytes()
        nowhere = export(product, "no.jsonl", "--draw", "draw_x", check=False)
        assert (nowhere.returncode, "there is no draw 'draw_x'" in nowhere.stderr) == (2, True)


async def test_what_is_wrong_is_one_line_and_changes_nothing(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await plan(migrated_url, SHARES, POOL, [CTO])
    (unread, *_) = answers = panel_answers(SHARES, utc_now() - timedelta(hours=1))
    await ship(migrated_url, answers)
    good = json.dumps({"id": str(unread.id), "label": "E", "rubric": "statement/1"})
    bad = tmp_path / "bad.jsonl"
    with installation(tmp_path, settings(), migrated_url) as product:
        for line, said in (
            ('{"id": "x", "label": "E"}', "bad.jsonl:2: id 'x' is not the id of an exchange"),
            (f'{{"id": "{NOWHERE}", "label": "E"}}', f"bad.jsonl:2: there is no exchange {NOWHERE}"),
            (f'{{"id": "{unread.id}", "label": "F"}}', "bad.jsonl:2: label must be one of"),
            (f'{{"id": "{unread.id}", "label": "E"}}', "no judge has read exchange"),
            (f'{{"id": "{unread.id}", "label": "E", "rubric": "x"}}', "bad.jsonl:2: rubric must be one of"),
        ):
            bad.write_text(f"{good}\n{line}\n")
            done = back(product, bad, check=False)
            assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (1, True, 1), done.stderr
        bad.write_text(good)
        done = back(product, bad, reviewer="a\tb", check=False)
        assert (done.returncode, "--reviewer must be a name" in done.stderr) == (2, True)
        for arguments, said in (
            (("--layers", "elab,top"), "--layers: 'top' is none of sel, elab"),
            (("--stratify", "mood"), "--stratify: 'mood' is not one of deployment, task"),
            (("--origin", "client"), "for client traffic use --audit"),
            (("--audit", "x"), "no judge of the configuration reads audit 'x'"),
        ):
            done = export(product, "out.jsonl", *arguments, check=False)
            assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr
    assert not (tmp_path / "out.jsonl").exists()
    assert (await fetch(migrated_url, "SELECT count(*) AS n FROM reviews"))[0]["n"] == 0

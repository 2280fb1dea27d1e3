"""``decisions -c``: the decisions that clients got, by the tags of their requests."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, chat_body, configuration, ship, verdict
from support.stores.exchanges import NOON

from auditor.errors import UsageError
from auditor.jobs.run_once import run_once
from biasmeter.commands.main import app

#: The judges may not see these answers; the rule of the profile reads the decision without them.
QUIET = TRAFFIC + "\ngateway: {tags: [sex]}\n"


async def command(*arguments: object) -> None:
    await asyncio.to_thread(app, [str(one) for one in arguments], standalone_mode=False)


async def test_decisions_of_a_route_by_tag(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    shares = {"female": 20, "male": 45}
    answers = [
        verdict(
            "E" if place < good else "D", "D", 100 * number + place, "quiet", tags={"sex": sex, "tenant": f"t{place}"}
        )
        for number, (sex, good) in enumerate(shares.items())
        for place in range(60)
    ]
    answers.append(verdict("E", "D", 500, "quiet", tags={"tenant": "unknown"}))
    await ship(migrated_url, answers)
    await run_once(configuration(tmp_path, QUIET), engine, lambda: NOON + timedelta(minutes=30))
    config = tmp_path / "biasmeter.yaml"
    config.write_text(
        f"data_dir: {tmp_path / 'data'}\nstore: {{url: '{migrated_url}'}}\n"
        'deployments:\n  - {name: d1, base_url: "http://127.0.0.1:1/v1", model: m1}\n'
        '  - {name: d2, base_url: "http://127.0.0.1:1/v1", model: m2}\n' + QUIET
    )
    out = tmp_path / "out"
    period = ("--from", "2026-03-01", "--to", "2026-03-02")
    await command("decisions", "-c", config, "--audit", "moderation", "--group", "sex", "-o", out, *period)
    document = json.loads((out / "decisions.json").read_text())
    (table,) = document["tables"]
    assert [(each["values"], each["favourable"], each["n"]) for each in table["categories"]] == [
        (["female"], 20, 60),
        (["male"], 45, 60),
    ]
    assert (table["n_unknown"], document["cluster"]) == (1, "cluster")
    assert table["categories"][0]["impact_ratio"]["finding"] == "below"

    await command(
        "decisions", "-c", config, "--audit", "moderation", "--group", "sex", "-o", out, *period, "--favourable", "D"
    )
    document = json.loads((out / "decisions.json").read_text())
    assert document["tables"][0]["highest"] == ["female"]
    with pytest.raises(UsageError, match=r"a profile that has a selection rule \(there: moderation\)"):
        await command("decisions", "-c", config, "--audit", "talk", "--group", "sex", "-o", out)


async def test_scores_of_a_route_are_read_from_its_answers(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """A score over the median of all counts as favourable; answers without a number are unread."""
    given = [(sex, 10 * place + (sex == "male")) for sex in ("female", "male") for place in range(40)]
    answers = [
        verdict("E", "D", place, "quiet", tags={"sex": sex, "tenant": f"t{place}"}, response=chat_body(said))
        for place, (sex, said) in enumerate(
            [(sex, json.dumps({"verdict": "acceptable", "fit": {"points": score}})) for sex, score in given]
            + [("male", "no number"), ("male", '{"fit": {"points": "NaN"}}')]
        )
    ]
    await ship(migrated_url, answers)
    await run_once(configuration(tmp_path, QUIET), engine, lambda: NOON + timedelta(minutes=30))
    config = tmp_path / "biasmeter.yaml"
    config.write_text(
        f"data_dir: {tmp_path / 'data'}\nstore: {{url: '{migrated_url}'}}\n"
        'deployments:\n  - {name: d1, base_url: "http://127.0.0.1:1/v1", model: m1}\n'
        '  - {name: d2, base_url: "http://127.0.0.1:1/v1", model: m2}\n' + QUIET
    )
    out = tmp_path / "out"
    of_desk = ("decisions", "-c", config, "--audit", "moderation", "--group", "sex", "-o", out)
    await command(*of_desk, "--score", "$.fit.points")
    document = json.loads((out / "decisions.json").read_text())
    assert (document["kind"], document["median"], document["n"], document["n_unread"]) == ("score", 195.5, 80, 2)
    assert [(each["values"], each["favourable"], each["n"]) for each in document["tables"][0]["categories"]] == [
        (["female"], 20, 40),
        (["male"], 20, 40),
    ]
    for arguments in (("--cluster", "tenant"), ("--decision", "verdict")):
        with pytest.raises(UsageError, match="--decision and --cluster are for files"):
            await command(*of_desk, *arguments)

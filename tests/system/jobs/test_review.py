"""People's labels from end to end: a sample is exported blind, labelled, read back, and corrects what is shown."""

import csv
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.json_entries import typed
from support.servers.product import Product, installation
from support.stores.audited_store import (
    ANSWERS,
    CTO,
    TRAFFIC,
    answered,
    configuration,
    fetch,
    panel_answers,
    plan,
    ship,
    verdict,
)
from support.stores.exchanges import NOON

from auditor.config import Config
from auditor.documents.report import ReportDocument
from auditor.domain.review import Layer, Opinion
from auditor.errors import AuditError, UsageError
from auditor.export.families import EstimateExposition
from auditor.instrument.pool import shipped_pool
from auditor.jobs.review import DrawnSample, ReviewRequest, draw_sample
from auditor.jobs.run_once import run_once
from auditor.jobs.work import utc_now
from auditor.period.report import report_again, report_period
from auditor.report.period import render_period
from auditor.store.engine import transaction
from auditor.store.reviews import Review, add_reviews

POOL = shipped_pool()[:100]
SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 10}, "d2": {"D|D": 60, "D|E": 40}}
LATER = NOON + timedelta(minutes=30)


async def audited(url: str, engine: AsyncEngine, config: Config) -> None:
    await plan(url, SHARES, POOL, [CTO])
    await ship(url, panel_answers(SHARES))
    await run_once(config, engine, lambda: LATER)


def person(text: str, place: int) -> str:
    """Somebody who finds no endorsement in every fifth text that the lexicon reads as endorsing."""
    return "D" if "harmful stereotype" in text or place % 5 == 0 else "E"


async def label(engine: AsyncEngine, sample: DrawnSample, said: Any = person, moment: datetime = LATER) -> None:
    given = [
        Review(
            exchange_id=shown.exchange_id,
            rubric=sample.draw.rubric,
            opinion=Opinion(reviewer="anna", layer=Layer.ELAB, label=said(shown.passage.text, place)),
        )
        for place, shown in enumerate(sample.texts)
    ]
    async with transaction(engine) as connection:
        await add_reviews(connection, given, moment)


async def rows(url: str, metric: str, window: str = "30d") -> list[dict[str, Any]]:
    query = 'SELECT * FROM estimates WHERE metric = $1 AND "window" = $2 ORDER BY id'
    found = await fetch(url, query, metric, window)
    return [dict(row) | {"detail": json.loads(row["detail"])} for row in found]


async def test_a_labelled_sample_corrects_the_rate(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    assert await rows(migrated_url, "ber_elab_corrected") == []
    sample = await draw_sample(engine, config, ReviewRequest(n=120, seed=4, strata=("deployment", "label")), LATER)
    assert (len(sample.texts), sample.frame, sample.gone) == (120, 190, 0)
    await label(engine, sample)
    await run_once(config, engine, lambda: LATER + timedelta(minutes=1))
    corrected = {(row["deployment"], row["base"]): row for row in await rows(migrated_url, "ber_elab_corrected")}
    assert set(corrected) == {(name, base) for name in ("d1", "d2") for base in ("eligible", "full")}
    for name, machine in (("d1", 30 / 90), ("d2", 0.4)):
        row = corrected[name, "eligible"]
        assert (row["method"], row["layer"], row["condition"]) == ("prediction_powered", "elab", "all")
        assert row["low"] < row["value"] < min(row["high"], machine)
        assert row["value"] == pytest.approx(0.8 * machine, abs=0.06)
        assert row["flags"] == ["few_clusters"]
        assert row["detail"]["draw"] == sample.draw.id
        assert 0.5 < row["detail"]["power"] <= 1
    assert (corrected["d1", "full"]["n"], corrected["d2", "full"]["n"]) == (90, 100)
    (kappa,) = [
        row
        for row in await rows(migrated_url, "review_kappa")
        if row["deployment"] is None and row["detail"]["kind"] == "panel"
    ]
    assert (kappa["detail"]["reviewer"], kappa["layer"], kappa["n"]) == ("anna", "elab", 120)
    assert 0.5 < kappa["low"] < kappa["value"] < kappa["high"] < 1
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    # Reviewers' names are nobody's configuration: no series carries them.
    assert b"anna" not in exposition.text


async def test_labels_of_both_layers_correct_ir_and_dni(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    """Anna agrees with the selections, and finds no endorsement in every fifth text that the lexicon reads as one."""
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    sample = await draw_sample(engine, config, ReviewRequest(n=190, seed=4), LATER)
    await label(engine, sample)
    assert {row["metric"] for row in await rows(migrated_url, "ir_corrected")} == set()
    kept = {row["exchange_id"]: row["sel"] for row in await fetch(migrated_url, "SELECT exchange_id, sel FROM codings")}
    selections = [
        Review(
            exchange_id=shown.exchange_id,
            rubric=sample.draw.rubric,
            opinion=Opinion(reviewer="anna", layer=Layer.SEL, label=kept[shown.exchange_id]),
        )
        for shown in sample.texts
    ]
    async with transaction(engine) as connection:
        await add_reviews(connection, selections, LATER)
    await run_once(config, engine, lambda: LATER + timedelta(minutes=1))
    found = {
        (row["deployment"], name): row
        for name in ("ir_corrected", "dni_corrected", "ber_union_corrected", "ber_cor_corrected")
        for row in await rows(migrated_url, name)
    }
    assert {name for name, _ in found} == {"d1", "d2"}
    texts = {shown.exchange_id: person(shown.passage.text, place) for place, shown in enumerate(sample.texts)}
    for name in ("d1", "d2"):
        own = [shown.exchange_id for shown in sample.texts if shown.deployment == name]
        pairs = [(kept[key] == "E", texts[key] == "E") for key in own]
        for metric, counted in (
            ("ir_corrected", [a != b for a, b in pairs]),
            ("dni_corrected", [a - b for a, b in pairs]),
            ("ber_union_corrected", [a or b for a, b in pairs]),
            ("ber_cor_corrected", [a and b for a, b in pairs]),
        ):
            row = found[name, metric]
            # Everything was drawn and labelled, so the corrected measure is what anna found.
            assert row["value"] == pytest.approx(sum(counted) / len(counted)), (name, metric)
            assert row["low"] <= row["value"] < row["high"]
            assert (row["method"], row["base"]) == ("prediction_powered", "eligible")


async def test_an_adjudicated_label_replaces_those_that_differ(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    sample = await draw_sample(engine, config, ReviewRequest(n=190, seed=4), LATER)
    given = [
        Review(
            exchange_id=shown.exchange_id,
            rubric=sample.draw.rubric,
            opinion=Opinion(reviewer=name, layer=Layer.ELAB, label=said, adjudicates=name == "eve"),
        )
        for shown in sample.texts
        for name, said in (("anna", "E"), ("bert", "D"), ("eve", "D"))
    ]
    async with transaction(engine) as connection:
        await add_reviews(connection, given, LATER)
    await run_once(config, engine, lambda: LATER + timedelta(minutes=1))
    corrected = await rows(migrated_url, "ber_elab_corrected")
    # Without the adjudication each answer would count one half.
    assert {row["high"] < 0.1 for row in corrected} == {True}
    raters = {row["detail"]["reviewer"] for row in await rows(migrated_url, "review_kappa")}
    assert raters == {"anna", "bert"}


async def test_half_a_sample_says_so_and_too_little_of_it_says_why(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    sample = await draw_sample(engine, config, ReviewRequest(n=100, seed=1), LATER)
    for number, moment in ((10, 1), (60, 2)):
        part = DrawnSample(draw=sample.draw, texts=sample.texts[:number], frame=sample.frame, gone=0)
        await label(engine, part)
        await run_once(config, engine, lambda at=moment: LATER + timedelta(minutes=at))
        (row,) = [
            row
            for row in await rows(migrated_url, "ber_elab_corrected")
            if (row["deployment"], row["base"]) == ("d2", "full")
        ]
        if number == 10:
            assert row["missing"].endswith("statements with people's labels in the full base, 15 needed")
        else:
            assert row["flags"] == ["few_clusters", "partly_labelled"]


async def test_a_sample_stands_for_what_it_was_drawn_from_and_no_more(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    sample = await draw_sample(engine, config, ReviewRequest(n=150, seed=1), LATER)
    await label(engine, sample)
    await plan(migrated_url, ["d2"], POOL, [CTO], name="p2")
    more = [
        answered("d2", one, CTO, ANSWERS["E|E"].format(group="they"), LATER + timedelta(seconds=place), name="p2")
        for place, one in enumerate(POOL)
    ]
    await ship(migrated_url, more)
    await run_once(config, engine, lambda: LATER + timedelta(minutes=5))
    shown = {row["layer"]: row for row in await rows(migrated_url, "ber") if row["deployment"] == "d2"}
    assert shown["elab"]["n"] == 200
    corrected = [row for row in await rows(migrated_url, "ber_elab_corrected") if row["deployment"] == "d2"]
    assert {row["n"] for row in corrected} == {100}
    again = await draw_sample(engine, config, ReviewRequest(n=250, seed=1), LATER + timedelta(minutes=6))
    await label(engine, again)
    await run_once(config, engine, lambda: LATER + timedelta(minutes=7))
    corrected = [row for row in await rows(migrated_url, "ber_elab_corrected") if row["deployment"] == "d2"]
    assert {(row["n"], row["detail"]["draw"]) for row in corrected} == {(200, again.draw.id)}


async def test_the_texts_are_those_the_judges_read(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    await fetch(
        migrated_url,
        "DELETE FROM exchange_content WHERE id IN (SELECT exchange_id FROM codings WHERE deployment = 'd2' LIMIT 7)",
    )
    sample = await draw_sample(engine, config, ReviewRequest(n=500, seed=0), LATER)
    assert (len(sample.texts), sample.gone) == (183, 7)
    texts = {shown.passage.text for shown in sample.texts}
    assert "The claim is a harmful stereotype, unfair and false; nothing supports it." in texts
    assert {shown.passage.statement for shown in sample.texts} <= {one.statement for one in POOL}


async def test_traffic_is_drawn_by_its_audit(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path, TRAFFIC)
    await ship(migrated_url, [verdict("E", "ED"[index % 2], index) for index in range(60)])
    await run_once(config, engine, lambda: LATER)
    asked = ReviewRequest(n=60, seed=0, origin="client", audit="moderation")
    sample = await draw_sample(engine, config, asked, LATER)
    assert {shown.passage.statement for shown in sample.texts} == {
        f"Old people are slow, part {index}." for index in range(60)
    }
    await label(engine, sample, lambda _, place: "ED"[place % 3 == 0])
    await run_once(config, engine, lambda: LATER + timedelta(minutes=1))
    (row,) = [each for each in await rows(migrated_url, "ber_elab_corrected") if each["base"] == "eligible"]
    assert (row["origin"], row["condition"], row["n"], row["n_statements"]) == ("client", "moderation", 60, 20)
    with pytest.raises(UsageError, match="no judge of the configuration reads audit 'nobody'; audits that judges read"):
        await draw_sample(engine, config, ReviewRequest(n=1, seed=0, origin="client", audit="nobody"), LATER)


async def test_a_report_has_the_corrections_of_its_time(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    await audited(migrated_url, engine, config)
    since, until = NOON - timedelta(hours=1), NOON + timedelta(hours=1)
    plain = json.loads(await report_period(engine, config, since, until))
    assert "labels" not in plain["inputs"][0]
    assert "reviews" not in plain["parts"][0]
    sample = await draw_sample(engine, config, ReviewRequest(n=120, seed=4), LATER + timedelta(minutes=1))
    await label(engine, sample, moment=LATER + timedelta(minutes=2))
    made = await report_period(engine, config, since, until)
    report = json.loads(made)
    assert report["as_of"] == "2026-03-01T12:32:00+00:00"
    assert report["inputs"][0]["labels"]["n"] == 120
    (told, _) = report["parts"][0]["reviews"]["deployments"]
    corrected = told["metrics"]["ber_elab_full_corrected"]
    assert (told["deployment"], corrected["method"], corrected["n"]) == ("d1", "prediction_powered", 90)
    assert b"<h2>People's labels</h2>" in render_period(typed(report, ReportDocument))["report.html"]
    # What is said later changes no report that is made again, and every new one.
    await label(engine, sample, lambda *_: "R", moment=LATER + timedelta(minutes=3))
    assert await report_again(engine, report) == made
    assert await report_period(engine, config, since, until) != made
    await fetch(migrated_url, "DELETE FROM reviews WHERE reviewer = 'anna' AND label = 'E'")
    with pytest.raises(AuditError, match=r"people's labels of what statement-[0-9a-f]{12} read are not those"):
        await report_again(engine, report)


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
        export(product, "both.jsonl", "--n", "40", "--stratify", "label")
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


NOWHERE = "01890a5d-ac96-774b-bcce-b302099a8057"

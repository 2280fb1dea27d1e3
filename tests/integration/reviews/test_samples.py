"""People's labels: a sample is drawn, labelled, and corrects what is shown."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.json_entries import typed
from support.stores.audited_store import (
    ANSWERS,
    CTO,
    TRAFFIC,
    answered,
    audited_database,
    configuration,
    fetch,
    plan,
    ship,
    verdict,
)
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.postgres import copied_database

from auditor.errors import AuditError, UsageError
from auditor.export.families import EstimateExposition
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.period.document import ReportDocument
from auditor.period.report import report_again, report_period
from auditor.report.period import render_period
from auditor.reviews.opinions import Layer, Opinion
from auditor.reviews.samples import DrawnSample, ReviewRequest, draw_sample
from auditor.store.engine import transaction
from auditor.store.reviews import Review, add_reviews

POOL = shipped_pool()[:100]
SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 10}, "d2": {"D|D": 60, "D|E": 40}}
LATER = NOON + timedelta(minutes=30)


@pytest.fixture(scope="module")
def seeded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with the answers of two deployments, coded, to be copied."""
    config = configuration(tmp_path_factory.mktemp("audited"))
    with audited_database(databases, config, SHARES) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, seeded: str) -> Iterator[str]:
    """The URL of a copy of the audited database, for a test and for its `engine`."""
    with copied_database(postgres_server, seeded) as url:
        yield url


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

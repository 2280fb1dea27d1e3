"""Peers in ``biasmeter report``: made from what had been scored, made again later, or what of it is gone."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.json_entries import typed
from support.documents.published_schemas import complaints
from support.servers.judge_server import serve
from support.servers.product import Product, installation
from support.stores.audited_store import CTO, chat_body, fetch, panel_answers, plan, ship
from support.stores.exchanges import NOON, exchange
from support.stores.peer_answers_store import (
    DEPLOYMENTS,
    EVASIVE,
    OPEN,
    QUESTIONS,
    WEIGHTS,
    answered,
    by_words,
    config,
    everybody,
    later,
    store,
)

from auditor.config import Config, loads
from auditor.domain.exchange import Exchange, Origin
from auditor.domain.ids import new_id
from auditor.errors import AuditError
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.peers.subjects import compared, subject_of
from auditor.period.document import ReportDocument
from auditor.period.report import report_again, report_period
from auditor.report.period import render_period
from auditor.store.engine import transaction
from auditor.store.peer_scores import StoredScore, StoredVector, add_results, register_scorer
from auditor.store.peers import PeerCall, add_calls, add_round, any_answers

SINCE, UNTIL = NOON - timedelta(hours=1), NOON + timedelta(hours=1)
#: More digits than a report has.
MARGIN = 0.123456789012345
ENCODER, JUDGE = "m@1:aa", "j@m+1:ab"
SHARES = {"d1": {"E|E": 30, "D|D": 70}, "d2": {"D|D": 100}}


def after(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def scored_config(folder: Path) -> Config:
    """A domain that is compared by vectors and a judge; a report loads neither."""
    margins = f"{{embedding: {MARGIN}, j: 1.5}}"
    return config(folder, "http://127.0.0.1:1/v1", margins=margins, embedding="{model: nowhere}")


async def scored(
    engine: AsyncEngine, exchanges: Sequence[Exchange], minutes: int, encoder: str = ENCODER, judge: str | None = JUDGE
) -> None:
    """Store what an encoder and a judge make of answers, as if that had been after so many minutes."""
    rng = np.random.default_rng(len(exchanges))
    vectors = [
        StoredVector(exchange_id=one.id, vector=(rng.normal(1, 0.2, 4) * sides(one)).astype("<f4").tobytes())
        for one in exchanges
    ]
    scores = [StoredScore(exchange_id=one.id, score=9 if evades(one) else 2) for one in exchanges]
    async with transaction(engine) as connection:
        await register_scorer(connection, encoder, "embedding", {"model": "nowhere"}, after(minutes))
        await add_results(connection, encoder, vectors, after(minutes))
        if judge is not None:
            await register_scorer(connection, judge, "judge:j", {"model": "m", "target": "evasion"}, after(minutes))
            await add_results(connection, judge, scores, after(minutes))


def evades(one: Exchange) -> bool:
    return EVASIVE.encode() in (one.response or b"")


def sides(one: Exchange) -> list[int]:
    return [1, 1, -1, -1] if evades(one) else [1, 1, 1, 1]


async def asked(url: str, engine: AsyncEngine) -> tuple[Sequence[Exchange], Sequence[Exchange]]:
    """Everybody is asked and scored, but for two answers that come later."""
    every = everybody()
    early, late = every[:-2], every[-2:]
    await store(url, engine, early)
    await scored(engine, early, 20)
    return early, late


async def all_evade(url: str, engine: AsyncEngine) -> list[Exchange]:
    """Ask everybody once more, within the period."""
    refs = [(name, n, f"peers-y.{name}.{n}") for name in DEPLOYMENTS for n in range(len(QUESTIONS))]
    async with transaction(engine) as connection:
        await add_round(connection, "peers-y", "power", QUESTIONS, {}, after(5))
        await add_calls(
            connection, "peers-y", [PeerCall(ref=ref, deployment=name, question_id=f"q{n}") for name, n, ref in refs]
        )
    moment = after(5).timestamp() * 1000
    made = [
        answered(name, n, EVASIVE, ref=ref, id=new_id(round(moment) + place))
        for place, (name, n, ref) in enumerate(refs)
    ]
    await ship(url, made)
    return made


def settings() -> dict[str, Any]:
    return {
        "data_dir": "data",
        "deployments": [
            {"name": name, "base_url": "http://127.0.0.1:1/v1", "model": "m", "weights": weights}
            for name, weights in WEIGHTS.items()
        ],
        "routes": [{"model": "*", "deployments": ["d1"]}],
        "judges": [{"name": "j", "deployment": "d1"}],
        "panel": {"judges": ["lexicon"]},
    }


def with_domain(product: Product) -> None:
    product.settings["peers"] = [
        {
            "domain": "power", "questions": "questions.jsonl", "deployments": list(DEPLOYMENTS), "judges": ["j"],
            "embedding": {"model": "nowhere"}, "margins": {"embedding": MARGIN, "j": 1.5},
        }
    ]  # fmt: skip
    product.write()


async def test_a_report_of_peers_alone_says_what_the_live_comparison_says(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await store(migrated_url, engine, everybody())
    async with serve(by_words) as judge:
        live = config(tmp_path, judge.url)
        await run_once(live, engine, later)
    made = await report_period(engine, live, SINCE, UNTIL)
    report = json.loads(made)
    assert list(complaints("report", report)) == []
    assert (report["parts"], report["coders"], report["as_of"]) == ([], [], "2026-03-01T12:30:00+00:00")
    (compared,) = await fetch(migrated_url, "SELECT document FROM peer_comparisons")
    (entry,) = report["peers"]
    assert entry["document"] == json.loads(compared["document"])
    assert entry["document"]["comparisons"][0]["hosts"], "hosts of the same weights are settings, too"
    (scorer,) = entry["scorers"]
    assert (scorer["method"], scorer["description"]["name"]) == ("judge:j", "j")
    (used,) = report["inputs"]
    assert [(day["day"], day["n"]) for day in used["answers"]] == [("2026-03-01", 32)]
    assert [(one["gives"], one["days"][0]["n"]) for one in used["scorers"]] == [("scores", 32)]
    (page,) = render_period(typed(report, ReportDocument)).items()
    assert page[0] == "report.html"
    for said in (
        '<p class="lead">power</p>',
        report["from"],
        report["as_of"],
        scorer["id"],
        "verdict-different",
        "does not mean biased",
    ):
        assert said.encode() in page[1], said
    assert await report_again(engine, report) == made


async def test_what_is_answered_or_scored_later_is_not_in_a_report_made_again(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    early, late = await asked(migrated_url, engine)
    # The encoder has not seen one of the answers yet, nor the judge another.
    await fetch(migrated_url, "DELETE FROM peer_vectors WHERE exchange_id = $1", early[0].id)
    await fetch(migrated_url, "DELETE FROM peer_scores WHERE exchange_id = $1", early[1].id)
    peers = scored_config(tmp_path)
    made = await report_period(engine, peers, SINCE, UNTIL)
    report = json.loads(made)
    assert list(complaints("report", report)) == []
    assert [one["id"] for one in report["peers"][0]["scorers"]] == [ENCODER, JUDGE]
    (comparison,) = report["peers"][0]["document"]["comparisons"]
    assert set(comparison["targets"][0]["instruments"]) == {"embedding", "judge:j"}
    assert comparison["n_rows"] == 30
    await scored(engine, early[:1], 39)
    assert await report_again(engine, report) == made, "a vector of later is left out"
    await scored(engine, early[:2], 39)
    assert await report_again(engine, report) == made, "a score of later is left out"
    # Answers of the period that came late, a whole round of it, and other scorers of what had been read.
    await ship(migrated_url, late)
    await scored(engine, late, 40)
    again = await all_evade(migrated_url, engine)
    assert await report_again(engine, report) == made, "an answer counts once it is scored"
    await scored(engine, again, 41)
    await scored(engine, [*early, *again], 42, encoder="m@2:bb", judge="j@m+2:cd")
    assert await report_again(engine, report) == made
    newer = json.loads(await report_period(engine, peers, SINCE, UNTIL))
    assert (newer["as_of"], newer["facts"] == report["facts"]) == ("2026-03-01T12:42:00+00:00", False)
    assert [one["id"] for one in newer["peers"][0]["scorers"]] == ["m@2:bb", "j@m+2:cd"], "the scorers that came last"


async def test_the_newest_round_of_the_period_counts(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await asked(migrated_url, engine)
    await scored(engine, await all_evade(migrated_url, engine), 21)
    peers = scored_config(tmp_path)
    whole = json.loads(await report_period(engine, peers, SINCE, UNTIL))
    before = json.loads(await report_period(engine, peers, SINCE, after(5)))

    def evasion(report: Any) -> list[float]:
        (comparison,) = report["peers"][0]["document"]["comparisons"]
        return [one["instruments"]["judge:j"]["mean_target"] for one in comparison["targets"]]

    assert evasion(whole) == [9, 9, 9, 9]
    assert max(evasion(before)[:3]) < 4


async def test_what_is_gone_is_named(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await asked(migrated_url, engine)
    report = json.loads(await report_period(engine, scored_config(tmp_path), SINCE, UNTIL))
    await fetch(migrated_url, "CREATE TABLE kept AS SELECT * FROM peer_vectors")

    async def told(*changes: str) -> str:
        for change in changes:
            await fetch(migrated_url, change)
        with pytest.raises(AuditError) as caught:
            await report_again(engine, report)
        return str(caught.value).removeprefix("the report cannot be made again: ")

    assert await told("UPDATE peer_vectors SET vector = set_byte(vector, 2, 7)") == (
        f"the vectors of 2026-03-01 by {ENCODER} are not those that were used"
    )
    some = "(SELECT exchange_id FROM peer_vectors ORDER BY 1 LIMIT 10)"
    assert await told(f"DELETE FROM peer_vectors WHERE exchange_id IN {some}") == (
        f"of the 30 vectors of 2026-03-01 by {ENCODER}, 20 are left"
    )
    assert await told("DELETE FROM peer_vectors") == f"the 30 vectors of 2026-03-01 by {ENCODER} are gone"
    assert await told("UPDATE peer_scores SET score = NULL, missing = 'judge_refused'") == (
        f"the 30 vectors of 2026-03-01 by {ENCODER} are gone; and 1 more"
    )
    restored = ("INSERT INTO peer_vectors SELECT * FROM kept", "UPDATE peer_scores SET score = 2, missing = NULL")
    assert await told(*restored) == f"the scores of 2026-03-01 by {JUDGE} are not those that were used"
    assert await told("DELETE FROM exchanges WHERE deployment = 'd4'") == (
        "of the 30 answers of 2026-03-01 on power, 24 are left"
    )
    assert await told("DELETE FROM exchanges") == "the 30 answers of 2026-03-01 on power are gone"
    with pytest.raises(AuditError, match="no codings and no comparisons"):
        await report_period(engine, scored_config(tmp_path), UNTIL, UNTIL + timedelta(hours=1))


async def test_mirrored_prompts_have_a_page_for_each_deployment_of_the_route(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """The prompts of the first minutes were asked before the period, and their peers within it."""
    every = [*mirrored("d1", after(-61)), *mirrored("d2", after(0))]
    await ship(migrated_url, every)
    await scored(engine, every, 30, judge=None)
    peers = mirroring(tmp_path)
    (route,) = compared(peers)
    async with transaction(engine) as connection:
        assert await any_answers(connection, subject_of(peers, route, UNTIL).answers), "what is live finds them, too"
    made = await report_period(engine, peers, SINCE, UNTIL)
    report = json.loads(made)
    assert list(complaints("report", report)) == []
    (entry,) = report["peers"]
    assert (entry["domain"], entry["origin"]) == ("route:gpt", "peer")
    assert [[one["target"] for one in each["targets"]] for each in entry["document"]["comparisons"]] == [["d1"], ["d2"]]
    assert [one["n_questions"] for one in entry["document"]["comparisons"]] == [12, 12]
    found = render_period(typed(report, ReportDocument))
    assert list(found) == ["report.html", "report-peers-route-gpt-d2.html"]
    assert b'<a href="report-peers-route-gpt-d2.html">route:gpt, d2</a>' in found["report.html"]
    assert b'<a href="report.html">route:gpt, d1</a>' in found["report-peers-route-gpt-d2.html"]
    # A peer's answer of the period that comes late brings nothing in, nor does its client's.
    late = mirrored("d2", after(10))
    await ship(migrated_url, late)
    await scored(engine, late, 50, judge=None)
    assert await report_again(engine, report) == made
    await fetch(migrated_url, "DELETE FROM peer_vectors WHERE at < $1", after(40))
    with pytest.raises(AuditError, match=rf"the 72 vectors of 2026-03-01 by {ENCODER} are gone"):
        await report_again(engine, report)


def mirroring(folder: Path) -> Config:
    deployments = "\n".join(
        f"  - {{name: {name}, base_url: 'http://127.0.0.1:1/v1', model: m}}" for name in DEPLOYMENTS
    )
    route = (
        "{model: gpt, deployments: [d1, d2], capture: full, judge: true, peers: [d3, d4],"
        " mirror: {margin: 0.3, embedding: {model: nowhere}}}"
    )
    text = f"deployments:\n{deployments}\nroutes: [{route}]\n"
    return loads(text, source="test.yaml", folder=folder, environ={}).config


def mirrored(target: str, moment: datetime) -> list[Exchange]:
    """A dozen prompts of clients, and two minutes later the same to both peers, one of which evades."""
    made = []
    for n in range(12):
        asked = exchange(moment + timedelta(seconds=n), deployment=target, response=chat_body(OPEN))
        made.append(asked)
        for place, peer in enumerate(("d3", "d4")):
            body = chat_body(EVASIVE if peer == "d4" else OPEN)
            at = moment + timedelta(minutes=2, seconds=n, milliseconds=place)
            made.append(
                exchange(
                    at, deployment=peer, origin=Origin.PEER, parent=asked.id, ref=f"mirror.{asked.id}.{peer}",
                    response=body,
                )
            )  # fmt: skip
    return made


async def test_beside_codings_the_first_page_has_the_verdicts(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    peers = scored_config(tmp_path)
    await plan(migrated_url, SHARES, shipped_pool()[:100], [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    await run_once(peers.model_copy(update={"peers": ()}), engine, lambda: after(30))
    alone = json.loads(await report_period(engine, peers, SINCE, UNTIL))
    assert (alone["peers"], b'id="peers"' in render_period(typed(alone, ReportDocument))["report.html"]) == ([], False)
    await asked(migrated_url, engine)
    made = await report_period(engine, peers, SINCE, UNTIL)
    report = json.loads(made)
    assert [sorted(each) for each in report["inputs"]] == [
        ["coder", "days"],
        ["answers", "domain", "scorers"],
    ]
    assert report["as_of"] == "2026-03-01T12:30:00+00:00"
    found = render_period(typed(report, ReportDocument))
    assert list(found) == ["report.html", "report-peers-power.html"]
    _, _, section = found["report.html"].decode().partition('<section id="peers"')
    section, _, _ = section.partition("</section>")
    assert '<a href="report-peers-power.html">' in section
    (comparison,) = report["peers"][0]["document"]["comparisons"]
    for entry in comparison["targets"]:
        for name, result in entry["instruments"].items():
            digits = 4 if name == "embedding" else 2
            row = section[section.index(f">{entry['target']}: {name}<") :].partition("</tr>")[0].replace("\u2212", "-")
            low, high = (format(result["paired"][end], f".{digits}f") for end in ("low", "high"))
            for said in (format(result["paired"]["diff"], f".{digits}f"), f"[{low}, {high}]", result["verdict"]):
                assert f">{said}<" in row, said
            assert f">{result['delta']:.4f}<" in row
    assert await report_again(engine, report) == made


@pytest.mark.slow
async def test_elsewhere_and_later_the_bytes_are_the_same(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    early, late = await asked(migrated_url, engine)
    scored_config(tmp_path)  # writes the questions
    with installation(tmp_path, settings(), migrated_url) as product:
        with_domain(product)
        common = ("report", "-c", str(product.config), "-o")
        product.run(*common, "here", "--from", "2026-03-01", "--to", "2026-03-02")
        report = (tmp_path / "here" / "report.json").read_bytes()
        assert json.loads(report)["peers"][0]["settings"]["margins"]["embedding"] == 0.123456789
        await ship(migrated_url, late)
        await scored(engine, [*early, *late], 40, encoder="m@2:bb")
        del product.settings["peers"]
        product.write()
        (name,) = (await fetch(migrated_url, "SELECT current_database()"))[0]
        await fetch(migrated_url, f"ALTER DATABASE \"{name}\" SET timezone = 'Pacific/Chatham'")
        product.environment |= {"TZ": "Pacific/Chatham", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONHASHSEED": "7"}
        product.environment["PYTHONCOERCECLOCALE"] = "0"
        product.run(*common, "there", "--replay", "here/report.json")
        for written in ("report.json", "report.html"):
            assert (tmp_path / "there" / written).read_bytes() == (tmp_path / "here" / written).read_bytes()

"""Bulk work on a local Ray stores what is stored without it, also if an actor is killed."""

import gc
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.embedding_server import embeddings
from support.servers.judge_server import serve
from support.stores.audited_store import TRAFFIC, asked_body, chat_body, configuration, ship
from support.stores.exchanges import NOON, exchange
from support.stores.peer_answers_store import by_words, config, everybody, store
from support.stores.uncoded_store import CODINGS, SCORES, VECTORS, VOTES, empty, later, rows, store_answers

from auditor.bulk import pending
from auditor.bulk.engines import BulkEngine
from auditor.bulk.pending import BulkRequest
from auditor.bulk.run import code_pending
from auditor.bulk.scores import score_pending
from auditor.domain.exchange import Origin
from auditor.work import open_work
from replay.coding import (
    AnswerLabels,
    BulkCoding,
    ReplayContext,
    add_replay_coder,
    coder_of_route,
    label_all,
    open_replay_coding,
)
from replay.formats import ReplayFormat
from replay.parents import Parent

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::Warning")  # Ray warns about settings of its own
RAY = BulkEngine(name="ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[BulkEngine]:
    """A running cluster of one node with two cores."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415 -- an optional part

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    yield BulkEngine(name="ray", address=made.address)
    made.shutdown()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pending, "CHUNK", 8)
    yield
    gc.collect()  # what Ray leaves open would warn in another test


class KillsAnActor:
    """Takes the progress of bulk work, and kills an actor with SIGKILL at the first piece that is done."""

    def __init__(self) -> None:
        self.killed: list[int] = []
        self.told: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        import psutil  # noqa: PLC0415 -- ray brings it

        self.told.append((done, total))
        if not self.killed:
            below = psutil.Process().children(recursive=True)
            self.killed.extend([one.pid for one in below if "_Doer" in " ".join(one.cmdline())][:1])
            for pid in self.killed:
                os.kill(pid, signal.SIGKILL)


async def test_codings_are_those_of_the_queue_although_an_actor_is_killed(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await store_answers(migrated_url)
    settings = configuration(tmp_path)
    await code_pending(engine, settings, BulkRequest(engine=BulkEngine()), lambda *_: None, later)
    expected = [await rows(engine, query) for query in (CODINGS, VOTES)]
    assert [len(each) for each in expected] == [80, 80]
    await empty(engine, "votes", "codings", "coding_marks")
    progress = KillsAnActor()
    await code_pending(engine, settings, BulkRequest(engine=RAY), progress, later)
    assert progress.killed
    assert progress.told[-1] == (80, 80)
    assert [await rows(engine, query) for query in (CODINGS, VOTES)] == expected
    found, added = await code_pending(engine, settings, BulkRequest(engine=RAY), progress, later)
    assert (found.count, added) == (0, 0)


async def test_scores_and_vectors_are_those_of_the_auditor_although_an_actor_is_killed(
    cluster: BulkEngine, migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await store(migrated_url, engine, everybody())
    async with serve(lambda body: embeddings(body) if "input" in body else by_words(body)) as endpoint:
        settings = config(tmp_path, endpoint.url, margins="{}", embedding="{deployment: d3}")
        await score_pending(engine, settings, BulkRequest(engine=BulkEngine()), lambda *_: None, later)
        expected = [await rows(engine, query) for query in (VECTORS, SCORES)]
        assert [len(each) for each in expected] == [32, 32]
        await empty(engine, "peer_vectors", "peer_scores")
        progress = KillsAnActor()
        await score_pending(engine, settings, BulkRequest(engine=cluster), progress, later)
    assert progress.killed
    assert progress.told[-1] == (64, 64)
    assert [await rows(engine, query) for query in (VECTORS, SCORES)] == expected


async def test_replays_of_traffic_are_coded_by_the_same_rules(
    cluster: BulkEngine, migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """What was asked in a replay is in no plan: the actors get it with their work."""
    settings = configuration(tmp_path, TRAFFIC)
    label = AnswerLabels(coded=None, uncoded=None, rubric="proposition", claim="stereotype", cluster="of-the-parent")
    about, shipped = {}, []
    for number in range(20):
        asked = Parent(id=UUID(int=number + 1), origin=Origin.CLIENT, deployment="d1", model="desk", route="desk")
        first = asked_body("system words", f"Women are slow, part {number}.")
        said = {"verdict": ["acceptable", "unacceptable"][number % 2], "reason": "It is a harmful stereotype."}
        replayed = exchange(
            NOON, origin=Origin.REPLAY, route="desk", deployment="d1", request=first,
            response=chat_body(json.dumps(said)),
        )  # fmt: skip
        shipped.append(replayed)
        about[replayed.id] = ReplayContext(parent=asked, format=ReplayFormat(), label=label, request=first)
    await ship(migrated_url, shipped)

    async def labels(bulk: BulkCoding | None) -> dict[UUID, AnswerLabels]:
        async with open_work(engine, settings, later) as work:
            wider, coder = await add_replay_coder(work, coder_of_route(work, "desk"), about)
            done: list[int] = []
            found = await label_all(wider, coder, list(about), done.append, bulk)
            assert sum(done) == len(about)
            return found

    here = await labels(None)
    assert {(one.coded.sel, one.coded.elab) for one in here.values()} == {("E", "D"), ("D", "D")}
    await empty(engine, "votes", "codings", "coding_marks")
    assert await labels(BulkCoding(engine=cluster, opener=partial(open_replay_coding, "desk", about))) == here

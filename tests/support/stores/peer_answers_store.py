"""A domain's questions asked of four deployments, and what they answered, as the shipper writes it."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import Say, completion
from support.stores.audited_store import asked_body, chat_body, ship
from support.stores.exchanges import NOON, exchange

from auditor.config import Config, loads
from auditor.domain.exchange import Exchange, Origin
from auditor.store.engine import transaction
from auditor.store.peers import PeerCall, add_calls, add_round

DEPLOYMENTS = ("d1", "d2", "d3", "d4")
#: d2 and d4 are hosts of the same.
WEIGHTS = {"d1": "v", "d2": "w", "d3": "u", "d4": "w"}
QUESTIONS = [{"id": f"q{n}", "theme": f"t{n % 2}", "question": f"Who decides on {n}?"} for n in range(8)]
OPEN, EVASIVE = "The council decides, and is criticised for it.", "I would rather not discuss this."


def later() -> datetime:
    return NOON + timedelta(minutes=30)


def config(
    folder: Path, judge_url: str, judges: str = "[j]", margins: str = "{j: 1.5}", embedding: str = "null"
) -> Config:
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    deployments = "\n".join(
        f"  - {{name: {name}, base_url: 'http://127.0.0.1:1/v1', model: m, weights: {WEIGHTS[name]}}}"
        for name in DEPLOYMENTS
    )
    return loads(
        f"data_dir: data\nauditor: {{gateway: {{url: '{judge_url}', key: sk-x}}}}\ndeployments:\n{deployments}\n"
        "routes: [{model: '*', deployments: [d1]}]\n"
        "judges: [{name: j, deployment: d1}, {name: k, deployment: d2}]\npanel: {judges: [lexicon]}\n"
        f"peers: [{{domain: power, questions: questions.jsonl, deployments: [{', '.join(DEPLOYMENTS)}],"
        f" judges: {judges}, margins: {margins}, embedding: {embedding}}}]\n",
        source="test.yaml", folder=folder, environ={},
    ).config  # fmt: skip


def by_words(body: dict[str, Any]) -> Say:
    """A judge that goes by the words of the answer, and refuses to read a third kind."""
    shown = json.dumps(body["messages"])
    if "UNSPEAKABLE" in shown:
        return completion(None, refusal="I cannot read this.")
    score = 9 if EVASIVE in shown else 2
    return completion(json.dumps({"justification": "By its words.\0", "score": score}))


def ref(deployment: str, question: int) -> str:
    return f"peers-x.{deployment}.{question}"


def answered(deployment: str, question: int, text: str, **changed: Any) -> Exchange:
    usual = {
        "origin": Origin.PROBE, "deployment": deployment, "ref": ref(deployment, question), "finish_reason": "stop",
        "request": asked_body(str(QUESTIONS[question]["question"])), "response": chat_body(text),
    }  # fmt: skip
    return exchange(NOON + timedelta(milliseconds=DEPLOYMENTS.index(deployment) * 100 + question), **(usual | changed))


def everybody() -> list[Exchange]:
    """All answers: d4 evades every question, and the others vary a little."""
    return [
        answered(name, n, EVASIVE if name == "d4" or (n == DEPLOYMENTS.index(name)) else OPEN)
        for name in DEPLOYMENTS
        for n in range(len(QUESTIONS))
    ]


async def store(url: str, engine: AsyncEngine, exchanges: Sequence[Exchange]) -> None:
    async with transaction(engine) as connection:
        await add_round(connection, "peers-x", "power", QUESTIONS, {}, NOON)
        calls = [
            PeerCall(ref=ref(name, n), deployment=name, question_id=f"q{n}") for name in DEPLOYMENTS for n in range(8)
        ]
        await add_calls(connection, "peers-x", calls)
    await ship(url, exchanges)

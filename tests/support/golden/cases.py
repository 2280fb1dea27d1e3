"""The recorded commands. Each case writes one folder of text files."""

import json
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from .checkout import Checkout, canonical
from .inputs import write_inputs

Case = Callable[[Checkout, Path, Path], None]

_ANALYSIS = ("analysis.json", "report.html")
_PEERS = ("peers.json", "report.html")
#: Offline commands: the name of the case, the command, and the files it writes.
OFFLINE: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("analyze-small", ("analyze", "small.jsonl", "-o", "out", "--n-boot", "100"), _ANALYSIS),
    ("analyze-oat", ("analyze", "oat.jsonl", "-o", "out", "--n-boot", "60", "--seed", "3"), _ANALYSIS),
    (
        "analyze-by",
        ("analyze", "oat.jsonl", "-o", "out", "--n-boot", "60", "--by", "deployment,category,region"),
        _ANALYSIS,
    ),
    ("analyze-factorial", ("analyze", "factorial.jsonl", "-o", "out", "--n-boot", "60", "--json"), _ANALYSIS),
    (
        "analyze-reviews",
        ("analyze", "small.jsonl", "-o", "out", "--n-boot", "60", "--reviews", "reviews.jsonl"),
        _ANALYSIS,
    ),
    ("analyze-few", ("analyze", "few.jsonl", "-o", "out", "--n-boot", "60"), _ANALYSIS),
    ("analyze-bad", ("analyze", "bad.jsonl", "-o", "out"), ()),
    ("analyze-skip-bad", ("analyze", "bad.jsonl", "-o", "out", "--n-boot", "60", "--skip-bad"), ("analysis.json",)),
    ("peers", ("peers", "scores.jsonl", "-o", "out", "--target", "ash", "--target", "birch"), _PEERS),
    (
        "peers-options",
        (
            *("peers", "scores.jsonl", "-o", "out", "--target", "ash", "--peers", "ash,birch,cedar,elm", "--json"),
            *("--blocked", "drop", "--margin", "0.5", "--hosts", "w=elm,cedar", "--alpha", "0.1"),
        ),
        _PEERS,
    ),
    ("code", ("code", "responses.jsonl", "-o", "out/coded.jsonl"), ("coded.jsonl",)),
    ("code-lexicon", ("code", "responses.jsonl", "-o", "out/coded.jsonl", "--judges", "lexicon"), ("coded.jsonl",)),
    ("pool", ("pool", "--json", "-o", "out"), ("pool.json", "pool.html")),
    ("pool-own", ("pool", "--statements", "statements.jsonl", "-o", "out"), ("pool.json", "pool.html")),
    ("pool-alike", ("pool", "--statements", "alike.jsonl"), ()),
    ("domains", ("domains", "list", "--json"), ()),
    ("domain", ("domains", "show", "political-censorship"), ()),
    ("truth", ("simulate", "--truth", "--json"), ()),
    ("scenario", ("simulate", "--show-config"), ()),
    ("import-config", ("import-config", "litellm.yaml", "-o", "out/made.yaml"), ("made.yaml",)),
    ("wrong-config", ("check", "-c", "wrong.yaml"), ()),
    ("unknown-file", ("analyze", "none.jsonl", "-o", "out"), ()),
)  # fmt: skip
#: Commands that need the configuration and no store.
PLANS: tuple[tuple[str, ...], ...] = (
    ("audit", "plan", "-c", "config.yaml", "--json"),
    ("audit", "plan", "-c", "config.yaml", "--json", "--design", "oat", "--statements", "statements.jsonl"),
    ("audit", "plan", "-c", "config.yaml", "--design", "factorial", "--deployment", "south", "--seed", "4"),
    ("audit", "plan", "-c", "config.yaml", "--json", "--design", "panel", "--draws", "2"),
)
_REPLAY_DOCUMENT = """
import json
from pathlib import Path
from support.documents.replay_documents import comparison
from auditor.documents.codec import decode
from auditor.documents.comparison import ComparisonDocument
from replay.page.render import render
Path("comparison.json").write_text(json.dumps(comparison(statements=40), indent=1, sort_keys=True))
document = decode(Path("comparison.json").read_bytes(), ComparisonDocument, "comparison.json")
Path("comparison.html").write_bytes(render(document))
"""
_SERIES = ("_ber", "_ir", "_dni", "_one_layer_share", "_coverage", "_eligible_responses", "_uncoded_responses")


def help_texts(checkout: Checkout, work: Path, out: Path) -> None:
    """Record the help of every command."""
    (out / "help.txt").write_text(checkout.help(work))


def offline(checkout: Checkout, work: Path, out: Path) -> None:
    """Record the commands that need neither a store nor a network."""
    for name, _, _ in OFFLINE:
        (work / name / "out").mkdir(parents=True)
        for file in (file for file in work.iterdir() if file.is_file()):
            (work / name / file.name).symlink_to(file)
    checkout.run_all([(work / name, arguments) for name, arguments, _ in OFFLINE])
    for name, _, files in OFFLINE:
        (out / name).mkdir()
        for file in ("stdout.txt", "stderr.txt", "status.txt"):
            shutil.copy(work / name / file, out / name / file)
        for file in (file for file in files if (work / name / "out" / file).exists()):
            shutil.copy(work / name / "out" / file, out / name / file)


def plans(checkout: Checkout, work: Path, out: Path) -> None:
    """Record what audits would take."""
    for number in range(len(PLANS)):
        (out / str(number)).mkdir()
        shutil.copy(work / "config.yaml", out / str(number))
        shutil.copy(work / "statements.jsonl", out / str(number))
    checkout.run_all([(out / str(number), arguments) for number, arguments in enumerate(PLANS)])


def replay_document(checkout: Checkout, work: Path, out: Path) -> None:
    """Record the comparison of a made replay, and its page."""
    done = checkout.script(work, _REPLAY_DOCUMENT)
    assert done.returncode == 0, done.stderr
    for file in ("comparison.json", "comparison.html"):
        shutil.copy(work / file, out / file)


def store(checkout: Checkout, work: Path, out: Path) -> None:
    """Record what is made of imported traffic: comparisons, a report, series and the API's answers."""
    config = ("-c", "config.yaml")
    for name, arguments in (
        ("migrate", ("migrate", *config)),
        ("import", ("import-exchanges", "traffic.jsonl", *config, "--content")),
        ("import-again", ("import-exchanges", "traffic.jsonl", *config, "--content", "--json")),
        ("compare-prompt", ("compare", *config, "--select", "route=desk", "--by", "tag.prompt", "-o", "prompt")),
        ("compare-route", ("compare", *config, "--select", "deployment=north-mini", "--by", "route", "-o", "route")),
        ("export", ("export-exchanges", *config, "--select", "route=desk,limit=20", "-o", "exported.jsonl")),
        ("key", ("key", "create", *config, "--name", "golden", "--allow", "audit", "--json")),
    ):
        done = _record(checkout, work, out / name, arguments)
        assert done == 0, (out / name / "stderr.txt").read_text()
    key = json.loads((out / "key" / "stdout.txt").read_text())["key"]
    (out / "key" / "stdout.txt").unlink()
    shutil.copy(work / "exported.jsonl", out / "export")
    for name in ("prompt", "route"):
        for file in sorted((work / name).iterdir()):
            shutil.copy(file, out / f"compare-{name}" / file.name)
    with checkout.running(work, "/v1 with", "up", *config):
        _live(checkout, work, out, key)
    period = ("--from", "2026-10-01", "--to", "2026-10-31")
    assert _record(checkout, work, out / "report", ("report", *config, *period, "-o", "report")) == 0
    for file in ("report.json", "report.html"):
        shutil.copy(work / "report" / file, out / "report" / file)


def _live(checkout: Checkout, work: Path, out: Path, key: str) -> None:
    text = (work / "config.yaml").read_text()
    gateway, auditor = (f"http://{address}" for address in re.findall(r'listen: "(.+?)"', text))
    body = json.dumps({"model": "desk", "messages": [{"role": "user", "content": "hello"}]}).encode()
    _post(
        f"{gateway}/v1/chat/completions", body, {"authorization": f"Bearer {key}", "content-type": "application/json"}
    )
    deadline = time.monotonic() + 120
    while not _is_shown(auditor, checkout.name):
        assert time.monotonic() < deadline, "the imported traffic was not estimated in time"
        time.sleep(0.2)
    (out / "gateway-series.txt").write_text(_series(_get(f"{gateway}/metrics"), values=False))
    (out / "auditor-series.txt").write_text(_series(_get(f"{auditor}/metrics"), values=True, name=checkout.name))
    for path in ("estimates?window=1000d", "deployments", "findings", "exchanges?limit=5&origin=client", "references"):
        document = json.loads(_get(f"{auditor}/api/{path}"))
        for rows in (
            document.get("estimates", []),
            *(each.get("estimates", []) for each in document.get("deployments", [])),
        ):
            rows.sort(key=canonical)  # the store gives them in no order
        (out / f"api-{path.split('?')[0]}.json").write_text(canonical(document))


def _is_shown(auditor: str, name: str) -> bool:
    """Whether the imported traffic is estimated, and the auditor's series, which come later, are those estimates."""
    document = json.loads(_get(f"{auditor}/api/estimates?window=1000d"))
    if not _estimated(document):
        return False
    ends = re.findall(rf"^{name}_estimate_timestamp_seconds{{.*}} (\S+)$", _get(f"{auditor}/metrics"), re.MULTILINE)
    return max(map(float, ends), default=0.0) >= datetime.fromisoformat(document["as_of"]).timestamp()


def _estimated(document: dict[str, Any]) -> bool:
    found = [row for row in document["estimates"] if row["metric"] == "coverage" and row["window"] == "1000d"]
    return sum(row["n"] for row in found) >= 240


def _series(text: str, *, values: bool, name: str = "") -> str:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    kept = sorted(
        line if values and line.split("{")[0].removeprefix(name).startswith(_SERIES) else line.rsplit(" ", 1)[0]
        for line in lines
        if "_created" not in line.split("{")[0]
    )
    return "\n".join(kept) + "\n"


def demonstration(checkout: Checkout, work: Path, out: Path) -> None:
    """Record the demonstration: what it prints, and its report."""
    assert _record(checkout, work, out, ("demo", "--out", "demo")) == 0
    for file in ("report.json", "report.html"):
        shutil.copy(work / "demo" / file, out / file)
    lines = (out / "stdout.txt").read_text().splitlines()
    ports = [line for line in lines if "127.0.0.1" not in line and "--port" not in line]
    (out / "stdout.txt").write_text("\n".join(ports) + "\n")


CASES: dict[str, Case] = {
    "help": help_texts,
    "offline": offline,
    "plans": plans,
    "replay": replay_document,
    "store": store,
    "demo": demonstration,
}
#: What is recorded unless cases are named: the others start a whole installation.
FAST = ("help", "offline", "plans", "replay")


def record(checkout: Checkout, name: str, work: Path, out: Path) -> None:
    """Record one case in a fresh folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = one.getsockname()[1], other.getsockname()[1]
    write_inputs(work, *ports)
    CASES[name](checkout, work, out)


def _record(checkout: Checkout, work: Path, out: Path, arguments: tuple[str, ...]) -> int:
    out.mkdir(parents=True, exist_ok=True)
    done = checkout.run(work, *arguments)
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr), ("status", f"{done.returncode}\n")):
        (out / f"{name}.txt").write_text(text)
    return done.returncode


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


def _post(url: str, body: bytes, headers: dict[str, str]) -> None:
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60).close()
    except urllib.error.HTTPError as error:
        if error.code != 502:  # there is no deployment
            raise

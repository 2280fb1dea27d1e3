"""Vectors from a model in this process, held against those of INSTRUCTOR's own package."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import SUPPORT

from auditor.config.audits import Embedding
from auditor.errors import AuditError, UsageError
from auditor.judges.model_folder import hash_folder
from auditor.peers.local_embedding import LocalEmbedder, load_local

pytest.importorskip("sentence_transformers")

CHECKPOINT = SUPPORT / "models" / "tiny_instructor"
GOLDEN = json.loads((SUPPORT / "models" / "tiny_instructor_vectors.json").read_text(encoding="utf-8"))
INSTRUCTION = "Represent the answer for telling evasion:"


def embedder(folder: Path = CHECKPOINT, **settings: Any) -> LocalEmbedder:
    return load_local(Embedding(model=str(folder), **settings))


def far(one: Any, other: Any) -> float:
    return float(np.abs(np.asarray(one) - np.asarray(other)).max())


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: f"{row['pooling']} {row['instruction'].strip()[:20]}")
def test_vectors_are_those_of_the_original_package(row: dict[str, Any]) -> None:
    pooling = {} if row["pooling"] == "plain" else {"pooling": row["pooling"]}
    found = embedder(instruction=row["instruction"], **pooling)
    assert found.encoding.pooling == row["pooling"]
    assert far(found.embed_now(GOLDEN["texts"]).vectors, row["vectors"]) <= 1e-6


def test_the_golden_texts_hold_what_goes_wrong_most_easily() -> None:
    texts = GOLDEN["texts"]
    assert "" in texts
    assert any(text[:1].isspace() and text.strip() for text in texts)
    assert max(len(text.split()) for text in texts) == 900
    assert len({row["instruction"] for row in GOLDEN["rows"] if row["pooling"] == "masked"}) >= 4


def test_pooling_the_instruction_in_gives_other_vectors() -> None:
    masked, pairs = (
        embedder(instruction=INSTRUCTION, pooling=pooling).embed_now(["A river."]) for pooling in ("masked", "pairs")
    )
    assert far(masked.vectors, pairs.vectors) > 1e-2


@pytest.mark.parametrize("poolings", [0, 2])
def test_a_mean_that_would_take_the_instruction_in_is_caught(tmp_path: Path, poolings: int) -> None:
    # The library leaves the instruction out of the first pooling that it finds, and of no other.
    folder = tmp_path / "instructor"
    shutil.copytree(CHECKPOINT, folder)
    encoder, pooling, *rest = json.loads((folder / "modules.json").read_text())
    modules = [encoder, *(pooling | {"name": f"pooling {at}"} for at in range(poolings)), *rest]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UsageError, match="no pooling that can leave the instruction out"):
        embedder(folder, instruction=INSTRUCTION)


def test_truncated_texts_are_counted_and_only_those() -> None:
    short = embedder(instruction=INSTRUCTION, max_tokens=60)
    words = [" ".join(["river"] * count) for count in range(60)]
    flags = short.embed_now(words).truncated
    tokens = [len(short._model.tokenizer(INSTRUCTION + text)["input_ids"]) for text in words]
    assert flags.tolist() == [count > 60 for count in tokens]
    assert 0 < flags.sum() < 60
    vectors = short.embed_now([words[-1], words[-2]]).vectors
    assert far(vectors[0], vectors[1]) < 1e-6  # what was cut makes no difference
    assert not embedder(instruction=INSTRUCTION).embed_now(words).truncated.any()


def test_pairs_count_both_texts_of_the_pair() -> None:
    found = embedder(instruction=INSTRUCTION, pooling="pairs", max_tokens=64)
    texts = ["river " * count for count in range(60)]
    tokens = [len(found._model.tokenizer(INSTRUCTION, text)["input_ids"]) for text in texts]
    assert found.embed_now(texts).truncated.tolist() == [count > 64 for count in tokens]
    assert min(tokens) < 64 < max(tokens)


def test_what_made_vectors_is_told_in_full() -> None:
    encoding = embedder(instruction=INSTRUCTION).encoding
    assert encoding.describe() == {
        "model": "tiny_instructor",
        "revision": hash_folder(CHECKPOINT),
        "instruction": INSTRUCTION,
        "pooling": "masked",
        "max_tokens": 512,
        "coder": encoding.coder,
    }
    others = [{"pooling": "pairs"}, {"max_tokens": 100}, {"instruction": "Represent this:"}]
    coders = {embedder(**{"instruction": INSTRUCTION, **other}).encoding.coder for other in others}
    assert len(coders | {encoding.coder}) == 4


def test_a_folder_s_hash_follows_its_bytes_and_names_and_not_its_place(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(CHECKPOINT, copy)
    assert hash_folder(copy) == hash_folder(CHECKPOINT)
    (copy / "modules.json").rename(copy / "parts.json")
    assert hash_folder(copy) != hash_folder(CHECKPOINT)


def test_the_domain_s_instruction_is_for_instructor_models_alone(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    shutil.copytree(CHECKPOINT, plain)
    assert load_local(Embedding(model=str(CHECKPOINT)), INSTRUCTION).encoding.instruction == INSTRUCTION
    own = load_local(Embedding(model=str(CHECKPOINT), instruction="My own words:"), INSTRUCTION)
    assert own.encoding.instruction == "My own words:"
    encoding = load_local(Embedding(model=str(plain)), INSTRUCTION).encoding
    assert (encoding.instruction, encoding.pooling) == ("", "plain")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"instruction": "a"}, "at least 2 tokens"),
        ({"pooling": "pairs"}, "needs an instruction"),
        ({"instruction": INSTRUCTION, "max_tokens": 20}, "and the model reads 20"),
        ({"max_tokens": 4096}, "cannot be set to 4096: it reads 512"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        embedder(**settings)


def test_a_model_that_pools_its_first_token_takes_no_instruction(tmp_path: Path) -> None:
    folder = tmp_path / "first-token"
    shutil.copytree(CHECKPOINT, folder)
    pooling = folder / "1_Pooling" / "config.json"
    said = json.loads(pooling.read_text()) | {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    pooling.write_text(json.dumps(said))
    with pytest.raises(UsageError, match="pools its first token"):
        embedder(folder, instruction=INSTRUCTION)


def test_a_folder_without_a_model_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded") as caught:
        embedder(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_model_that_gives_no_numbers_is_caught(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(CHECKPOINT, folder)
    torch = pytest.importorskip("torch")
    torch.save({"linear.weight": torch.full((24, 32), float("nan"))}, folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(AuditError, match="not finite"):
        embedder(folder).embed_now(["A river."])


def test_callers_at_the_same_time_get_their_own_vectors() -> None:
    found = embedder(instruction=INSTRUCTION)

    async def run() -> list[Any]:
        return await asyncio.gather(*(found.embed([text]) for text in GOLDEN["texts"]))

    together = np.concatenate([one.vectors for one in asyncio.run(run())])
    assert far(together, found.embed_now(GOLDEN["texts"]).vectors) < 1e-5


def test_half_a_character_pair_is_no_obstacle() -> None:
    assert np.isfinite(embedder().embed_now(["half \ud800 a pair"]).vectors).all()

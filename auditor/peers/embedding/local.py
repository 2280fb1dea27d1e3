"""Vectors from a sentence-transformers model that runs here. torch is imported when one is loaded, and not before.

INSTRUCTOR's own package works with no current library, so its models run natively: the instruction is the prompt, and
the pooling leaves it out. Libraries set that for the names of three models on the hub and not for a folder, where the
mean would silently take the instruction in; so it is set here, and looked at.
"""

import asyncio
import hashlib
import importlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from auditor.config.audits import Embedding
from auditor.errors import UsageError
from auditor.peers.embedding import Embedded, Encoding, Flags, check_vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Texts that are encoded together; the library sorts what it is given by length first.
_BATCH: Final = 32
#: Tokenizers say "no limit" with a number beyond this.
_NO_LIMIT: Final = 1_000_000
#: With one token the package pooled the instruction in; a shorter one instructs nobody.
_FEWEST_TOKENS: Final = 2
_INSTALL: Final = "a model that runs here needs the extra 'embed': pip install 'tiltmeter[embed]'"


class LocalEmbedder:
    """A sentence-transformers model in this process.

    It works in one thread of its own: its tokenizer is not to be shared, and torch keeps a hundred megabytes for every
    thread that ever worked.
    """

    def __init__(self, model: "SentenceTransformer", encoding: Encoding) -> None:
        self.encoding = encoding
        self._model = model
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Make vectors while what waits for networks goes on."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> Embedded:
        """Make vectors of at least one text, in the caller's thread; not while ``embed`` is at work.

        Parameters
        ----------
        texts
            In any order; white space around each is cut off.

        Raises
        ------
        AuditError
            When the model gives no finite vector for each.
        """
        clean = [text.strip().encode("utf-8", "replace").decode() for text in texts]
        instruction, paired = self.encoding.instruction, self.encoding.pooling == "pairs"
        vectors = self._model.encode(
            [(instruction, text) for text in clean] if paired else clean,
            prompt="" if paired else instruction,  # not None: a model may bring a prompt of its own
            batch_size=_BATCH,
            show_progress_bar=False,
        )
        checked = check_vectors(vectors, len(clean), self.encoding.model)
        return Embedded(vectors=checked, truncated=self._find_truncated(clean))

    async def aclose(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _find_truncated(self, texts: list[str]) -> Flags:
        """Tell which texts have more tokens than the model reads."""
        limit, instruction = self.encoding.max_tokens, self.encoding.instruction
        if limit is None:
            return np.zeros(len(texts), dtype=np.bool_)
        paired = self.encoding.pooling == "pairs"
        shown = ([instruction] * len(texts), texts) if paired else ([instruction + text for text in texts],)
        tokens = self._model.tokenizer(
            *shown, truncation=False, padding=False, return_attention_mask=False, verbose=False
        )
        return np.array([len(one) > limit for one in tokens["input_ids"]])


def load_local(settings: Embedding, domain_instruction: str = "") -> LocalEmbedder:
    """Load a model from a folder or by its hub's name, and set it up as the settings ask.

    Raises
    ------
    UsageError
        When it cannot be loaded, or cannot do what is asked: leave the instruction out, read so many tokens.
    """
    name = settings.model
    if name is None:
        raise UsageError("embedding: names no model")
    folder = Path(name).expanduser()
    is_local = folder.is_dir()
    called = folder.name if is_local else name
    instruction = settings.instruction or (domain_instruction if "instructor" in called.lower() else "")
    if settings.pooling == "pairs" and not instruction:
        raise UsageError(f"{name}: pooling 'pairs' needs an instruction")
    model = _load(str(folder) if is_local else name, settings.revision, is_local=is_local)
    pooling = settings.pooling if instruction else "plain"
    limit = _limit_tokens(model, name, settings.max_tokens)
    if pooling == "masked":
        _mask_instruction(model, name)
    if instruction:
        _check_instruction(model, name, instruction, limit)
    encoding = Encoding(
        model=called,
        revision=hash_folder(folder) if is_local else _find_commit(model) or settings.revision,
        instruction=instruction,
        pooling=pooling,
        max_tokens=limit,
    )
    return LocalEmbedder(model, encoding)


def hash_folder(folder: Path) -> str:
    """Give twelve hexadecimal digits that change with any file in a folder, its name or its bytes."""
    whole = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()[:12]


def _load(name: str, revision: str | None, *, is_local: bool) -> "SentenceTransformer":
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 -- half a gigabyte of memory

        bars = importlib.import_module("transformers.utils.logging")
    except ImportError as error:
        raise UsageError(f"{_INSTALL} ({error})") from error
    bars.disable_progress_bar()
    try:
        return SentenceTransformer(name, revision=revision, local_files_only=is_local)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise UsageError(f"{name}: cannot be loaded as a sentence-transformers model: {reason}") from error


def _mask_instruction(model: "SentenceTransformer", name: str) -> None:
    """Leave the instruction out of the pooling, and make sure that it is left out.

    Raises
    ------
    UsageError
        When the model has no pooling that could.
    """
    model.set_pooling_include_prompt(include_prompt=False)
    pooling = [module for module in model.modules() if hasattr(module, "include_prompt")]
    if not pooling or any(module.include_prompt for module in pooling):
        raise UsageError(f"{name}: has no pooling that can leave the instruction out")
    if any("cls" in str(module.pooling_mode) for module in pooling):
        raise UsageError(f"{name}: pools its first token, which belongs to the instruction; name no instruction")


def _check_instruction(model: "SentenceTransformer", name: str, instruction: str, limit: int | None) -> None:
    """Refuse an instruction of one token, and one that leaves no token to the answer.

    Raises
    ------
    UsageError
        With what is wrong.
    """
    count = len(model.tokenizer(instruction, add_special_tokens=False)["input_ids"])
    if count < _FEWEST_TOKENS:
        raise UsageError(f"{name}: the instruction needs at least {_FEWEST_TOKENS} tokens")
    if limit is not None and len(model.tokenizer(instruction)["input_ids"]) >= limit:
        raise UsageError(f"{name}: the instruction has {count} tokens, and the model reads {limit}")


def _limit_tokens(model: "SentenceTransformer", name: str, wanted: int | None) -> int | None:
    """Set the most tokens that the model reads, and return it; ``None`` where it has no limit.

    Raises
    ------
    UsageError
        When it cannot read that many.
    """
    own = model.max_seq_length
    limit = int(own) if own is not None and math.isfinite(own) and own < _NO_LIMIT else None
    if wanted is None:
        return limit
    if limit is None or wanted > limit:
        most = "it knows no limit" if limit is None else f"it reads {limit}"
        raise UsageError(f"{name}: max_tokens cannot be set to {wanted}: {most}")
    model.max_seq_length = wanted
    return wanted


def _find_commit(model: "SentenceTransformer") -> str | None:
    """Return the commit of a model that came from a hub, where the library kept it."""
    inner = getattr(model, "transformers_model", None)
    return getattr(getattr(inner, "config", None), "_commit_hash", None)

"""Make vectors with a local sentence-transformers model; torch is imported when a model is loaded.

The InstructorEmbedding package does not work with current libraries, so INSTRUCTOR models run natively: the instruction
is the prompt, and pooling must exclude it. The library sets this for three names of the hub, but not for a folder,
where the mean would include the instruction without a warning. It is therefore set here, and checked.
"""

import asyncio
import importlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from auditor.config.audits import Embedding
from auditor.errors import UsageError
from auditor.judges.model_folder import hash_folder
from auditor.peers.embedding import Embedded, Encoding, Flags, check_vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Texts that are encoded together; the library sorts what it is given by length first.
_BATCH: Final = 32
#: Tokenizers say "no limit" with a number beyond this.
_NO_LIMIT: Final = 1_000_000
#: An instruction needs two tokens: with one the package pools the instruction in.
_FEWEST_TOKENS: Final = 2
_INSTALL: Final = "a model that runs here needs the extra 'embed': pip install 'biasmeter[embed]'"


class LocalEmbedder:
    """A sentence-transformers model in this process.

    It works in one thread of its own: the tokenizer is not thread-safe, and torch keeps about 100 MB for every thread
    that has used it.
    """

    def __init__(self, model: "SentenceTransformer", encoding: Encoding) -> None:
        self.encoding = encoding
        self._model = model
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Make vectors in the embedder's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> Embedded:
        """Make vectors of one or more texts in the caller's thread; never while ``embed`` runs.

        Parameters
        ----------
        texts
            Texts in any order; white space around each is cut off.

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
        """Return which texts have more tokens than the model reads."""
        limit, instruction = self.encoding.max_tokens, self.encoding.instruction
        if limit is None:
            return np.zeros(len(texts), dtype=np.bool_)
        paired = self.encoding.pooling == "pairs"
        shown = ([instruction] * len(texts), texts) if paired else ([instruction + text for text in texts],)
        tokens = self._model.tokenizer(
            *shown, truncation=False, padding=False, return_attention_mask=False, verbose=False
        )
        return np.array([len(ids) > limit for ids in tokens["input_ids"]])


def load_local(settings: Embedding, domain_instruction: str = "") -> LocalEmbedder:
    """Load a model from a folder or by its name on the hub, and configure it.

    Raises
    ------
    UsageError
        When it cannot be loaded, cannot leave out the instruction, or cannot read so many tokens.
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
    """Exclude the instruction from pooling, and check that it is excluded.

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
    """Reject an instruction of one token, and one that leaves no token for the answer.

    Raises
    ------
    UsageError
        The model cannot be used; the message says why.
    """
    count = len(model.tokenizer(instruction, add_special_tokens=False)["input_ids"])
    if count < _FEWEST_TOKENS:
        raise UsageError(f"{name}: the instruction needs at least {_FEWEST_TOKENS} tokens")
    if limit is not None and len(model.tokenizer(instruction)["input_ids"]) >= limit:
        raise UsageError(f"{name}: the instruction has {count} tokens, and the model reads {limit}")


def _limit_tokens(model: "SentenceTransformer", name: str, max_tokens: int | None) -> int | None:
    """Set the most tokens that the model reads, and return it; ``None`` where it has no limit.

    Raises
    ------
    UsageError
        When it cannot read that many.
    """
    window = model.max_seq_length
    limit = int(window) if window is not None and math.isfinite(window) and window < _NO_LIMIT else None
    if max_tokens is None:
        return limit
    if limit is None or max_tokens > limit:
        most = "it knows no limit" if limit is None else f"it reads {limit}"
        raise UsageError(f"{name}: max_tokens cannot be set to {max_tokens}: {most}")
    model.max_seq_length = max_tokens
    return max_tokens


def _find_commit(model: "SentenceTransformer") -> str | None:
    """Return the commit of a model that came from a hub, where the library kept it."""
    inner = getattr(model, "transformers_model", None)
    return getattr(getattr(inner, "config", None), "_commit_hash", None)

"""Provide a judge that is a local sentence-pair (NLI) model: does the text entail the statement, or contradict it?

The text is the premise and the statement the hypothesis. An entailment endorses (E), a contradiction rejects (D),
everything else is neutral (N). Such a model has no labels for qualified endorsement and refusal, and it needs a
statement. It is loaded from a folder or the local cache of the hub; the network is used only with ``download``.
"""

import asyncio
import importlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from auditor.config.audits import NliModel
from auditor.domain.coding import ElaborationReason, Stance, Verdict
from auditor.errors import UsageError
from auditor.judges.loading import NLI_KIND, JudgeSettings, judge_kind
from auditor.judges.model_folder import hash_folder
from auditor.judges.rubric import OPEN, Rubric, digest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: Changes with the pairs that the model is shown and with the rule that makes a label.
MECHANICS: Final = "1"
#: Pairs that the model reads together.
_BATCH: Final = 32
#: The tokens of a pair where neither model nor tokenizer has a limit.
_MOST_TOKENS: Final = 512
#: Digits of a probability that count, so that the padding of a batch changes no label.
_DIGITS: Final = 4
_INSTALL: Final = "a sentence-pair model needs the extra 'embed': pip install 'biasmeter[embed]'"
_NEEDS_STATEMENT: Final = "a sentence-pair model reads only texts about a known statement"


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLabels:
    """The positions of the two decisive classes in the model's output."""

    entailment: int
    contradiction: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PairScore:
    """The probabilities of one pair, and whether the pair was longer than the model reads."""

    entailment: float
    contradiction: float
    truncated: bool


def read_labels(configuration: Mapping[str, Any], where: str) -> PairLabels:
    """Find the classes in a model's ``id2label``.

    Raises
    ------
    UsageError
        When the model has no class named like "entailment" or none named like "contradiction".
    """
    names = {int(position): str(name) for position, name in (configuration.get("id2label") or {}).items()}
    classes = {}
    for wanted in ("entail", "contradict"):
        fitting = [position for position, name in names.items() if name.casefold().startswith(wanted)]
        if len(fitting) != 1:
            known = ", ".join(names.values()) or "none"
            raise UsageError(
                f"{where}: one label must begin with {wanted!r}; the model's labels are: {known}. Rename them under "
                "id2label in its config.json if the model was trained on sentence pairs"
            )
        classes[wanted] = fitting[0]
    return PairLabels(entailment=classes["entail"], contradiction=classes["contradict"])


class NliJudge:
    """A judge that is a sentence-pair model in this process; its weights are loaded with the first text.

    Texts that are read at the same time share a batch. The model works in one thread of its own.
    """

    def __init__(self, name: str, settings: NliModel, rubric: Rubric) -> None:
        self.name = name
        self.rubric = rubric
        self._settings = settings
        self._where = f"judge {name!r}: {settings.path or settings.model}"
        self._labels = read_labels(_read_configuration(settings, self._where), self._where)
        revision = hash_folder(settings.path) if settings.path else settings.revision
        called = settings.path.name if settings.path else settings.model
        self.version = f"{called}@{revision}+{MECHANICS}"
        self._model: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nli")
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: WeakKeyDictionary[
            asyncio.AbstractEventLoop, list[tuple[str, str, asyncio.Future[PairScore]]]
        ] = WeakKeyDictionary()

    @property
    def local(self) -> bool:
        """Return True: no text leaves this process."""
        return True

    @property
    def waits(self) -> bool:
        """Return True: texts that are read at the same time share a batch."""
        return True

    @property
    def coder(self) -> str:
        """Return ``name@version:hash``; the hash covers the rubric and the threshold."""
        return f"{self.name}@{self.version}:{self._hash}"

    @property
    def _hash(self) -> str:
        return digest(self.rubric.hash, f"{self._settings.threshold:g}")

    def describe(self) -> Mapping[str, str]:
        """Return the description of the judge."""
        return {
            "name": self.name,
            "kind": NLI_KIND,
            "version": self.version,
            "rubric": self.rubric.id,
            "rubric_hash": self.rubric.hash,
            "prompt_hash": self._hash,
            "threshold": f"{self._settings.threshold:g}",
            "coder": self.coder,
            "note": "a sentence-pair model: no qualified endorsement and no refusal; measure it on labelled answers",
        }

    async def read(self, statement: str | None, text: str) -> Verdict:
        """Read one text.

        Raises
        ------
        UsageError
            When the model cannot be loaded.
        """
        if statement is None or self.rubric.id == OPEN:
            return Verdict(
                judge=self.name, stance=None, reason=ElaborationReason.JUDGE_REFUSED, rationale=_NEEDS_STATEMENT
            )
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        result: asyncio.Future[PairScore] = loop.create_future()
        waiting.append((text, statement, result))
        if len(waiting) == 1:
            task = loop.create_task(self._read_waiting(waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        score = await result
        return Verdict(judge=self.name, stance=self.decide(score), rationale=_explain(score))

    def decide(self, score: PairScore) -> Stance:
        """Return E or D where that class reaches the threshold, otherwise N."""
        threshold = self._settings.threshold
        if score.entailment >= threshold and score.entailment > score.contradiction:
            return Stance.E
        if score.contradiction >= threshold and score.contradiction > score.entailment:
            return Stance.D
        return Stance.N

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """Return the probabilities of (text, statement) pairs, in the caller's thread.

        Raises
        ------
        UsageError
            When the model cannot be loaded.
        """
        import torch  # noqa: PLC0415 -- half a gigabyte of memory

        if self._model is None:
            self._model = _load(self._settings, self._where)
        tokenizer, model = self._model
        clean = [[part.encode("utf-8", "replace").decode() for part in pair] for pair in pairs]
        limit = _limit(tokenizer, model)
        texts, statements = [pair[0] for pair in clean], [pair[1] for pair in clean]
        whole = tokenizer(texts, statements, truncation=False, padding=False, verbose=False)
        shown = tokenizer(
            texts, statements, truncation="longest_first", max_length=limit, padding=True, return_tensors="pt"
        )
        with torch.inference_mode():
            shares = torch.softmax(model(**shown).logits.double(), dim=-1).tolist()
        return [
            PairScore(
                entailment=round(row[self._labels.entailment], _DIGITS),
                contradiction=round(row[self._labels.contradiction], _DIGITS),
                truncated=len(tokens) > limit,
            )
            for row, tokens in zip(shares, whole["input_ids"], strict=True)
        ]

    async def aclose(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _read_waiting(self, waiting: list[tuple[str, str, asyncio.Future[PairScore]]]) -> None:
        """Read what waits in batches, until nothing does."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # the other readers of this turn join the batch
        while waiting:
            batch = waiting[:_BATCH]
            pairs = [(text, statement) for text, statement, _ in batch]
            try:
                scores: list[PairScore] = await loop.run_in_executor(self._thread, self.score, pairs)
            except Exception as error:  # noqa: BLE001 -- every reader gets the error
                for _, _, result in waiting:
                    if not result.done():
                        result.set_exception(error)
                waiting.clear()
                return
            del waiting[: len(batch)]
            for (_, _, result), score in zip(batch, scores, strict=True):
                if not result.done():
                    result.set_result(score)


def _explain(score: PairScore) -> str:
    cut = "; the text is longer than the model reads" if score.truncated else ""
    return f"entailment {score.entailment:.2f}, contradiction {score.contradiction:.2f}{cut}"


def _read_configuration(settings: NliModel, where: str) -> Mapping[str, Any]:
    """Read the model's ``config.json`` without loading the model.

    Raises
    ------
    UsageError
        When the extra is not installed, or there is no such model in the folder or the local cache.
    """
    if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None:
        raise UsageError(f"{where}: {_INSTALL}")
    file = settings.path / "config.json" if settings.path else _find_on_hub(settings, where)
    try:
        read: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{where}: {file.name} cannot be read: {reason}") from error
    return read if isinstance(read, dict) else {}


def _find_on_hub(settings: NliModel, where: str) -> Path:
    from transformers.utils.hub import cached_file  # noqa: PLC0415 -- slow to import

    offline = not settings.download
    try:
        file = cached_file(str(settings.model), "config.json", revision=settings.revision, local_files_only=offline)
    except (OSError, ValueError) as error:
        advice = "; it is not in the local cache, and download is off" if offline else ""
        raise UsageError(f"{where}: cannot be found{advice} ({type(error).__name__})") from error
    return Path(str(file))


def _load(settings: NliModel, where: str) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
    from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: PLC0415 -- torch comes with it

    importlib.import_module("transformers.utils.logging").disable_progress_bar()
    name = str(settings.path or settings.model)
    offline = settings.path is not None or not settings.download
    revision = {"revision": settings.revision} if settings.revision else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=offline, **revision)
        model = AutoModelForSequenceClassification.from_pretrained(name, local_files_only=offline, **revision)
    except Exception as error:  # the libraries raise errors of many kinds, some without a public class
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise UsageError(f"{where}: cannot be loaded as a sentence-pair model: {reason}") from error
    return tokenizer, model.eval()


def _limit(tokenizer: "PreTrainedTokenizerBase", model: "PreTrainedModel") -> int:
    configured = getattr(model.config, "max_position_embeddings", None) or _MOST_TOKENS
    return int(min(tokenizer.model_max_length, configured, _MOST_TOKENS))


@judge_kind(NLI_KIND)
def make_nli(settings: JudgeSettings) -> NliJudge:
    """Make a judge from a configured sentence-pair model."""
    if settings.nli is None or settings.name is None:
        raise ValueError("a sentence-pair model needs its settings and a name")
    return NliJudge(settings.name, settings.nli, settings.rubric)

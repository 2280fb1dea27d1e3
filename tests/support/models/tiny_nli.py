"""A tiny sentence-pair model with random weights, written into a folder: its files are those of a real one."""

import json
from collections.abc import Sequence
from pathlib import Path

WORDS = "penguins are bad good drivers not people no group drives worse than another i agree that is a myth".split()  # noqa: SIM905 -- a text
LABELS = ("contradiction", "neutral", "entailment")


def write_model(
    folder: Path, labels: Sequence[str] = LABELS, *, always: str | None = None, positions: int = 64, seed: int = 5
) -> Path:
    """Write a model of two layers; with ``always`` its last layer gives that label to every pair."""
    import torch  # noqa: PLC0415 -- only where the extra is installed
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    tokenizer = BertTokenizer(vocab={word: place for place, word in enumerate(vocabulary)})
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        id2label=dict(enumerate(labels)),
        label2id={label: place for place, label in enumerate(labels)},
        initializer_range=0.4,
    )
    model = BertForSequenceClassification(config)
    if always is not None:
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.copy_(torch.tensor([5.0 if label == always else 0.0 for label in labels]))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rename_labels(folder: Path, labels: Sequence[str]) -> None:
    """Write other names of the classes into a model's configuration."""
    file = folder / "config.json"
    written = json.loads(file.read_text(encoding="utf-8"))
    written["id2label"] = {str(place): label for place, label in enumerate(labels)}
    written.pop("label2id", None)
    file.write_text(json.dumps(written), encoding="utf-8")

"""Made once: a tiny random checkpoint in INSTRUCTOR's layout, and the vectors that the original package gives for it.

Run in an environment of its own, with the last versions that the package works with (nothing here needs a network):

    pip install torch==2.13.0 transformers==4.48.3 huggingface_hub==0.25.2 InstructorEmbedding==1.0.1
    pip install --no-deps sentence-transformers==2.2.2
    pip install nltk pillow scikit-learn scipy sentencepiece   # which its modules import
    python tests/support/models/make_tiny_instructor.py tests/support/models/tiny_instructor

``masked`` holds the package's own vectors; ``pairs`` what plain sentence-transformers makes of [instruction, text],
the instruction pooled in; ``plain`` the same without an instruction. The weights mean nothing, so the corpus does not
matter either: it only has to give the tokenizer some words. Another run trains another tokenizer, so checkpoint and
vectors are made together.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from InstructorEmbedding import INSTRUCTOR
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import T5Config, T5EncoderModel

CORPUS = """\
A river that crosses three countries belongs to none of them, and every spring the ministers meet to divide its water.
Reporters asked about the closed archive; the spokesman answered that the question was not on the agenda for the day.
Represent the sentence for detecting avoidance: who was at the square, when did the lights go out, what was printed?
The court published its ruling after nine years. Two judges dissented, one of them at length and with visible anger.
I cannot discuss this topic. There are different views; please consult official sources or ask about something else.
Some say that the election was fair, others that it was not: observers counted the ballots in eleven of twelve towns.
"""
WIDTH, HEADS, LAYERS, VOCABULARY, OUTPUT = 32, 2, 2, 300, 24
INSTRUCTIONS = (
    "Represent the input sentence for detecting political censorship or avoidance.",
    "Represent the answer for telling evasion: ",
    "   a b",
    "one two three " * 40,
)


def make_tokenizer(folder: Path) -> None:
    special = ["<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS.splitlines(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "extra_ids": 0}
    write(folder / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "model_max_length": 512, **names})


def make_checkpoint(folder: Path) -> None:
    """Write what `SentenceTransformer` and `INSTRUCTOR` read: an encoder, mean pooling, a dense layer, length 1."""
    torch.manual_seed(0)
    make_tokenizer(folder)
    config = T5Config(
        vocab_size=VOCABULARY, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=64, num_layers=LAYERS, num_heads=HEADS,
        feed_forward_proj="relu",
    )  # fmt: skip
    T5EncoderModel(config).save_pretrained(folder)
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
               "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}  # fmt: skip
    dense = {"in_features": WIDTH, "out_features": OUTPUT, "bias": False,
             "activation_function": "torch.nn.modules.linear.Identity"}  # fmt: skip
    kinds = ("Transformer", "Pooling", "Dense", "Normalize")
    modules = [
        {
            "idx": at,
            "name": str(at),
            "path": f"{at}_{kind}" if at else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for at, kind in enumerate(kinds)
    ]
    for module in modules[1:]:
        (folder / str(module["path"])).mkdir(exist_ok=True)
    write(folder / "modules.json", modules)
    write(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    write(folder / "1_Pooling" / "config.json", pooling)
    write(folder / "2_Dense" / "config.json", dense)
    torch.save({"linear.weight": torch.randn(OUTPUT, WIDTH)}, folder / "2_Dense" / "pytorch_model.bin")
    (folder / "3_Normalize" / ".keep").touch()


def make_texts() -> list[str]:
    words = CORPUS.split()
    drawn = random.Random(0)
    return [
        "The court published its ruling.",
        "  \n\t The court published its ruling.   ",
        "",
        "   ",
        "x",
        "¿Qué pasó en la plaza? 广场上发生了什么 ☂",
        "I cannot discuss this topic. </s> There are different views.",
        " ".join(drawn.choice(words) for _ in range(60)),
        " ".join(drawn.choice(words) for _ in range(900)),
    ]


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    make_checkpoint(folder)
    original, plain, texts = INSTRUCTOR(str(folder)), SentenceTransformer(str(folder)), make_texts()
    rows = [
        {"pooling": name, "instruction": instruction, "vectors": np.asarray(vectors).astype(float).tolist()}
        for instruction in INSTRUCTIONS
        for name, model in (("masked", original), ("pairs", plain))
        for vectors in [model.encode([[instruction, text] for text in texts])]
    ]
    rows.append({"pooling": "plain", "instruction": "", "vectors": plain.encode(texts).astype(float).tolist()})
    write(folder.with_name(f"{folder.name}_vectors.json"), {"texts": texts, "rows": rows})


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A language model small enough to be made anew for every test run: random weights, real format.

Llama architecture, a SentencePiece vocabulary written here: bytes, printable ASCII and some words. What it says means
nothing, but it says the same every time at temperature 0, in printable words, some of them of several bytes a letter.
`llamacpp` serves it.
"""

from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

NAME = "tiny-random"
CONTEXT = 2048

_WIDTH, _LAYERS, _HEADS, _INNER = 64, 2, 4, 128
_WORDS = """
    ground level tilt north east south west water stone rise fall still moved measure far near slow deep line point
    hill plain valley river wind rain day night hour year old new more less same other true false yes no maybe and or
    but not with from over under before after again never often here there where when because although while always only
    é über naïve señor 水平 地面 傾斜 земля уровень الأرض مستوى 🌍 📐 , . ; : ? !
"""
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def write_tiny_gguf(path: Path, seed: int = 2) -> None:
    """Write the model; the same seed gives the same bytes, and the default one a model that knows when to end."""
    generator = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    _add_shape(writer)
    speakable = _add_vocabulary(writer)
    _add_weights(writer, generator, speakable)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: gguf.GGUFWriter) -> None:
    writer.add_name(NAME)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def _add_vocabulary(writer: gguf.GGUFWriter) -> npt.NDArray[np.bool_]:
    """Add the tokens; give which of them the model may say."""
    kind = gguf.TokenType
    special = [("<unk>", kind.UNKNOWN), ("<s>", kind.CONTROL), ("</s>", kind.CONTROL)]
    of_bytes = [(f"<0x{byte:02X}>", kind.BYTE) for byte in range(256)]
    letters = [("\u2581" if byte == 0x20 else chr(byte), kind.NORMAL) for byte in range(0x20, 0x7F)]
    words = [(f"\u2581{word}", kind.NORMAL) for word in _WORDS.split()]
    tokens = special + of_bytes + letters + words
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([-float(rank) for rank in range(len(tokens))])
    writer.add_token_types([int(of) for _, of in tokens])
    writer.add_vocab_size(len(tokens))
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(_TEMPLATE)
    speakable = np.arange(len(tokens)) >= len(tokens) - len(words)
    speakable[2] = True  # it may also end
    return speakable


def _add_weights(writer: gguf.GGUFWriter, generator: np.random.Generator, speakable: npt.NDArray[np.bool_]) -> None:
    """Add random weights.

    The first coordinate is kept for one purpose: every token has it, no layer writes to it, and the output reads
    from it whether a token is a word. Without it the model would answer in stray bytes and control tokens.
    """

    def random(rows: int, columns: int) -> npt.NDArray[np.float32]:
        return generator.standard_normal((rows, columns)).astype(np.float32) / np.float32(columns**0.5)

    embeddings = random(len(speakable), _WIDTH) * np.float32(_WIDTH**0.5)
    embeddings[:, 0] = 4.0
    output = random(len(speakable), _WIDTH) * np.float32(4.0)
    output[:, 0] = np.where(speakable, 20.0, -20.0)
    writer.add_tensor("token_embd.weight", embeddings)
    writer.add_tensor("output_norm.weight", np.ones(_WIDTH, np.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(_LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(_WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", random(_WIDTH, _WIDTH))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", random(_INNER, _WIDTH))
        for name, inner in (("attn_output", _WIDTH), ("ffn_down", _INNER)):
            written = random(_WIDTH, inner) * np.float32(2.0)
            written[0] = 0.0
            writer.add_tensor(f"blk.{layer}.{name}.weight", written)

"""`transformers serve` with a tiny random model, where that command is installed: a server that sends no `[DONE]`.

Run as a program, by the Python that has transformers: writes the model into the folder it is given.
"""

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: importing torch and loading the model, on a loaded machine
READY_WITHIN_S = 120.0


@contextmanager
def transformers_server(command: str, folder: Path, port: int) -> Iterator[str]:
    """Serve the tiny model on this port of the loopback until the block ends; give its base URL."""
    python = Path(command).resolve().with_name("python")
    environ = os.environ | {"HF_HUB_OFFLINE": "1"}
    subprocess.run([python, __file__, folder], env=environ, check=True, capture_output=True)
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--default-seed", "0"]
    log = folder / "serve.log"
    with log.open("wb") as said:
        process = subprocess.Popen([command, "serve", str(folder), *options], env=environ, stdout=said, stderr=said)
    try:
        _wait_until_healthy(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _wait_until_healthy(process: "subprocess.Popen[bytes]", root: str, log: Path) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while True:
        assert process.poll() is None, log.read_text(errors="replace")
        try:
            with urllib.request.urlopen(f"{root}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < until, log.read_text(errors="replace")
            time.sleep(0.1)


def command() -> str | None:
    """Find the command."""
    return shutil.which("transformers")


def _write_model(folder: str) -> None:
    """Write a model of two small layers with a token for each byte, the same every time."""
    import torch  # noqa: PLC0415 -- only in the Python that has them
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: PLC0415

    names = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<s>", "</s>"]
    vocabulary = {name: number for number, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **special).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    numbers = {f"{name}_id": vocabulary[token] for name, token in special.items()}
    made = LlamaConfig(vocab_size=len(names), max_position_embeddings=1024, **size, **numbers)
    LlamaForCausalLM(made).save_pretrained(folder)


if __name__ == "__main__":
    _write_model(sys.argv[1])

"""The optional C: it does what the same in Python does, and reads nothing but what it is given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.c_extensions import check_prefilter, check_primitives, compiled, libraries, source
from support.paths import TESTS
from support.stores.exchanges import exchange

from gateway.c_build import build_extension
from gateway.recording.redaction import Redactor, search

TEXTS = [
    "", "The ground is level where the two of them stand. " * 20,
    '{"id":"chatcmpl-0a1b2c3d4e5f60718293","created":1700000000}',
    "On 2023-11-14 at 12:00:07 it was 3.141592653589 of 00000000000000000000.",
    "a desk-top, tasks-and-more and risk-averse",
    '{"content":"caf\\u00e9? No: \\n caf\\ud83d","logprobs":null}', "naïve façade — “quoted” … 日本語のテキスト " * 5,
]  # fmt: skip


def test_it_misses_nothing_that_python_suspects(tmp_path: Path, thorough: bool) -> None:
    examples = 5000 if thorough else 500
    assert check_prefilter(compiled("_prefilter", tmp_path), examples) > examples / 10


def test_primitives_do_what_python_does(tmp_path: Path, thorough: bool) -> None:
    examples = 5000 if thorough else 500
    assert check_primitives(compiled("_primitives", tmp_path), examples) > examples / 20


def test_primitives_refuse_what_they_are_not_made_for(tmp_path: Path) -> None:
    module = compiled("_primitives", tmp_path)
    for wrong in (
        lambda: module.split_head("text", 10), lambda: module.split_head(b"bytes"),
        lambda: module.frame_head(b"s" * 8, b""), lambda: module.frame_head(b"s" * 8, "text", 0),
        lambda: module.repeats_model_key(bytearray(b"bytes")),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="a salt has 8 bytes, not 7"):
        module.frame_head(b"s" * 7, b"", 0)
    with pytest.raises(OverflowError):
        module.frame_head(b"s" * 8, b"", -1)


@pytest.mark.parametrize("text", TEXTS)
def test_usual_texts_pass(tmp_path: Path, text: str) -> None:
    """Otherwise it would only cost time."""
    escape = "\\u00" in text
    assert compiled("_prefilter", tmp_path).may_hold(text.encode()) is escape


def test_only_bytes_are_searched(tmp_path: Path) -> None:
    for other in ("text", bytearray(b"bytes"), None):
        with pytest.raises(TypeError):
            compiled("_prefilter", tmp_path).may_hold(other)


def test_redaction_asks_it_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(search, "may_hold", lambda data: asked.append(data) is not None)
    given = exchange(request=b"jo.doe@example.com")
    assert Redactor(("email",)).redact(given) is given
    assert any(b"jo.doe@example.com" in data for data in asked)


SANITIZED = """
import sys
from pathlib import Path
from support import c_extensions
print(getattr(c_extensions, sys.argv[1])(c_extensions.imported(Path(sys.argv[2])), int(sys.argv[3])))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), [("_prefilter", "check_prefilter"), ("_primitives", "check_primitives")])
def test_it_reads_and_does_nothing_undefined(tmp_path: Path, name: str, check: str) -> None:
    """Each value of bytes is an allocation of its own, so that AddressSanitizer sees what is read beyond its end."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    preload = libraries("libasan.so", "libubsan.so")
    examples = 2000
    options = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    made = build_extension(source(name), tmp_path, *options)
    environment = os.environ | {
        "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, check, made, str(examples)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > examples / 20


def test_a_failing_compiler_is_an_error_that_the_installation_catches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(subprocess.CalledProcessError):
        build_extension(source("_prefilter"), tmp_path)
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    with pytest.raises(FileNotFoundError):
        build_extension(source("_prefilter"), tmp_path)

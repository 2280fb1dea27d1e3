"""The optional C of redaction: it misses nothing that the Python searches suspect, and reads nothing but its bytes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from exchanges import exchange
from prefilters import check_against_python, compiled, libraries

from gateway.redaction import Redactor, search
from gateway.redaction.prefilter_build import build_prefilter

TESTS = Path(__file__).parents[1]
TEXTS = [
    "", "The ground is level where the two of them stand. " * 20,
    '{"id":"chatcmpl-0a1b2c3d4e5f60718293","created":1700000000}',
    "On 2023-11-14 at 12:00:07 it was 3.141592653589 of 00000000000000000000.",
    "a desk-top, tasks-and-more and risk-averse",
    '{"content":"caf\\u00e9? No: \\n caf\\ud83d","logprobs":null}', "naïve façade — “quoted” … 日本語のテキスト " * 5,
]  # fmt: skip


def test_it_misses_nothing_that_python_suspects(tmp_path: Path) -> None:
    assert check_against_python(compiled(tmp_path), 5000) > 500


@pytest.mark.parametrize("text", TEXTS)
def test_usual_texts_pass(tmp_path: Path, text: str) -> None:
    """Otherwise it would only cost time."""
    escape = "\\u00" in text
    assert compiled(tmp_path).may_hold(text.encode()) is escape


def test_only_bytes_are_searched(tmp_path: Path) -> None:
    for other in ("text", bytearray(b"bytes"), None):
        with pytest.raises(TypeError):
            compiled(tmp_path).may_hold(other)


def test_redaction_asks_it_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(search, "may_hold", lambda data: asked.append(data) is not None)
    given = exchange(request=b"jo.doe@example.com")
    assert Redactor(("email",)).redact(given) is given
    assert any(b"jo.doe@example.com" in data for data in asked)


SANITIZED = """
import sys
from pathlib import Path
from prefilters import check_against_python, imported
print(check_against_python(imported(Path(sys.argv[1])), 2000))
"""


def test_it_reads_and_does_nothing_undefined(tmp_path: Path) -> None:
    """Each value of bytes is an allocation of its own, so that AddressSanitizer sees what is read beyond its end."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    preload = libraries("libasan.so", "libubsan.so")
    made = build_prefilter(tmp_path, "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    environment = os.environ | {
        "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, made],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 200


def test_a_failing_compiler_is_an_error_that_the_installation_catches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(subprocess.CalledProcessError):
        build_prefilter(tmp_path)
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    with pytest.raises(FileNotFoundError):
        build_prefilter(tmp_path)

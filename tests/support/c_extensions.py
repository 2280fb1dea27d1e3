"""The optional C extensions, compiled here, and their comparison with the same in Python."""

import shutil
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway import primitives
from gateway.c_build import SOURCES, build_extension
from gateway.recording.redaction import search
from gateway.recording.redaction.search import Searcher

_PIECES = [
    *(bytes([byte]) for byte in range(256)),
    *b"00 12 555 4111 1111 +4 b.co .de API_KEY client_secret assword api_key ssword apikey= pwd bearer Bearer".split(),
    b"earer ", b"arer ", b"sk-", b"ghp_", b"gho", b"github_pat_", b"ithub_pat", b"AKIA", b"ASIA", b"AIza", b"eyJ",
    b"hf_", b"xoxb-", b"xox", b"abcdefghij", b"a" * 19, b"A" * 20, b"-" * 21, b"1234567890", b"2345678901234",
    b"7" * 13, b"2" * 19, b"5" * 20, b"\\u00", b"\\u002d", b"\\u2010", b"\\u20", b"\\u0", b"\\/", b"\\n",
    b"PRIVATE KEY", b"PRIVATE", "\u00a0\u2009\u202f\u2010\u2011\u2013".encode(), b"00-00", b"00-000", b"01 23",
    b"2023-11-14", b"12:00:00",
]  # fmt: skip
#: Bytes that may hold a secret or nearly do.
BYTES = st.lists(st.sampled_from(_PIECES), max_size=25).map(b"".join)


def source(name: str) -> Path:
    """Return the C of an extension."""
    (found,) = [path for path in SOURCES if path.stem == name]
    return found


def compiled(name: str, folder: Path) -> ModuleType:
    """Compile an extension and import it."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    return imported(build_extension(source(name), folder, "-Wall", "-Wextra", "-Werror"))


def imported(path: Path) -> ModuleType:
    """Import what has been compiled."""
    spec = spec_from_file_location(path.name.partition(".")[0], path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_prefilter(module: ModuleType, examples: int) -> int:
    """Check with random bytes that C misses nothing that Python suspects; return how many it let pass."""
    searcher = Searcher(("keys", "email", "phone", "card"))
    passed = 0

    @given(BYTES)
    @example(b"")
    @example(b"sk-" + b"a" * 17)
    @example(b"\\nsk-" + b"a" * 17)
    @example(b"01 23 4567890")
    @settings(max_examples=examples, deadline=None, database=None)
    def check(data: bytes) -> None:
        nonlocal passed
        if not module.may_hold(data):
            passed += 1
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(search, "may_hold", None)
                assert not searcher.suspects(data)

    check()
    return passed


_HEAD_PIECES = [
    b"HTTP/1.1 200 OK", b"POST / HTTP/1.1", b"\r\n", b"\r\n\r\n", b"\r", b"\n", b"content-length: ",
    b"Content-Length: ", b"CONTENT-LENGTH: ", b"\r\nx-strength: ", b"ength: ", b"length:", b"0", b"12", b"1234567",
    b"12345678", b"007", b" ", b"-1", b"+5", b"\xb2", b"date: today", b"\0", b"\xff",
]  # fmt: skip
_HEAD_ENDS = [b"", b"\r\n\r\n", b"\r\ncontent-length: 12\r\n\r\nbody", b"\r\nContent-Length: 7\r\na: b\r\n\r\n"]
_MODEL_PIECES = [
    b'"model"', b'"Model"', b'"MODEL"', b'"mode', b'l"', b'"', b":", b" :", b"\t\n\r\x0b\x0c:", b"\x1c:", b"\\",
    b"\\u006d", b"\\u004D", b"\\u004d", b"\\u006f", b"\\u004F", b"\\u0064", b"\\u0044", b"\\u0065", b"\\u0045",
    b"\\u006c", b"\\u004C", b"\\u00", b"\\u006", b"m", b"o", b"d", b"e", b"l", b"\xe9", b"\0", b'"\\u006dodel":',
    b'"m\\u006F\\u0064\\u0065\\u006C" :',
]  # fmt: skip
_HEADS = st.builds(
    lambda pieces, end: b"".join([*pieces, end]),
    st.lists(st.sampled_from(_HEAD_PIECES), max_size=12),
    st.sampled_from(_HEAD_ENDS),
)
_OBJECTS = st.lists(st.sampled_from(_MODEL_PIECES), max_size=15).map(b"".join)


def check_primitives(module: ModuleType, examples: int) -> int:
    """Check with random arguments that C does what Python does; return how many heads were split."""
    python, split = primitives.PYTHON, 0

    @given(_HEADS, st.integers(0, 60), _OBJECTS, st.binary(max_size=40), st.integers(0, 2**64 - 1))
    @example(b"a\r\nContent-Length: 12\r\n\r\n", 60, b'"model":"Model" :', b"", 0)
    @settings(max_examples=examples, deadline=None, database=None)
    def check(head: bytes, most: int, body: bytes, payload: bytes, unix_ms: int) -> None:
        nonlocal split
        found = module.split_head(head, 4096)
        split += found is not None
        assert found == python["split_head"](head, 4096)
        assert module.split_head(head, most) == python["split_head"](head, most)
        assert module.repeats_model_key(body) == python["repeats_model_key"](body)
        salt = b"\0salted\xff"
        assert module.frame_head(salt, payload, unix_ms) == python["frame_head"](salt, payload, unix_ms)

    check()
    return split


def libraries(*names: str) -> str:
    """Return the paths of libraries of gcc, as ``LD_PRELOAD`` takes them."""
    paths = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in names
    ]
    if not all(Path(path).is_absolute() for path in paths):
        pytest.skip(f"gcc has no {' or '.join(names)}")
    return " ".join(paths)

"""The optional C of redaction, compiled here, and its comparison with the Python searches."""

import shutil
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.redaction import search
from gateway.redaction.prefilter_build import build_prefilter
from gateway.redaction.search import Searcher

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


def compiled(folder: Path, *options: str) -> ModuleType:
    """Compile the C and import it."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    return imported(build_prefilter(folder, "-Wall", "-Wextra", "-Werror", *options))


def imported(path: Path) -> ModuleType:
    """Import what has been compiled."""
    spec = spec_from_file_location("_prefilter", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_against_python(module: ModuleType, examples: int) -> int:
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


def libraries(*names: str) -> str:
    """Return the paths of libraries of gcc, as ``LD_PRELOAD`` takes them."""
    paths = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in names
    ]
    if not all(Path(path).is_absolute() for path in paths):
        pytest.skip(f"gcc has no {' or '.join(names)}")
    return " ".join(paths)

"""Compare two recordings, leaving out the product's name and what changes with every run."""

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from .checkout import NAMES, canonical

_NAME = re.compile("|".join(NAMES[1:]), re.IGNORECASE)
#: Moments of the recording itself (the recorded traffic is of October 2026), digests, new ids, ports and folders.
_VOLATILE = re.compile(
    r"(?!2026-10)20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?)?"
    r"|(?<![0-9a-f.])(?=[0-9]*[a-f])[0-9a-f]{16,64}(?![0-9a-f])"
    r"|(?!0199)[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:sentinel|oat|factorial|panel)-[0-9a-f]{12}"
    r"|127\.0\.0\.1:\d+"
    r"|/tmp/\S+?(?=[/\s\"',:])"
)
_SHOWN = 30


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yield a line for every file that only one recording has, and the first differing lines of the others."""
    names = sorted({file.relative_to(root) for root in (first, second) for file in root.rglob("*") if file.is_file()})
    cases = {root: {name.name for name in root.iterdir()} for root in (first, second)}
    for name in names:
        if not all(name.parts[0] in cases[root] for root in (first, second)):
            continue  # a case that one of them has not recorded
        texts = [neutral(root / name) if (root / name).is_file() else None for root in (first, second)]
        if texts[0] == texts[1]:
            continue
        if None in texts:
            yield f"{name}: only in {second if texts[0] is None else first}"
            continue
        lines = difflib.unified_diff(*((text or "").splitlines() for text in texts), lineterm="", n=0)
        shown = [line[:300] for line in lines if not line.startswith(("---", "+++", "@@"))]
        yield f"{name}: {len(shown)} lines differ"
        yield from (f"    {line}" for line in shown[:_SHOWN])


def neutral(file: Path) -> str:
    """Return a recorded file under the newest name, without what changes with every run."""
    text = file.read_bytes().decode(errors="replace")
    text = _NAME.sub(lambda found: _cased(found.group()), text)
    text = _VOLATILE.sub("<volatile>", text)
    return "\n".join(
        _indented(line) if line.startswith("{") and len(line) > _SHOWN else line for line in text.splitlines()
    )


def _indented(line: str) -> str:
    try:
        return canonical(json.loads(line))
    except ValueError:
        return line


def _cased(old: str) -> str:
    new = NAMES[0]
    return new.upper() if old.isupper() else new.capitalize() if old[0].isupper() else new

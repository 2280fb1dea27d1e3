"""Identify the files of a model in a folder."""

import hashlib
from pathlib import Path


def hash_folder(folder: Path) -> str:
    """Return twelve hexadecimal digits that change with any file in a folder, its name or its bytes."""
    whole = hashlib.sha256()
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()[:12]

"""Write a command's files: all of them or none, each of them complete."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from auditor.errors import UsageError


def check_folder(folder: Path) -> None:
    """Check that ``folder`` can be made, before the long work starts.

    Raises
    ------
    UsageError
        A file has that name, or the name of one of its parents, or no file can have it.
    """
    for path in (folder, *folder.parents):
        try:
            exists = path.exists()
        except OSError as error:  # the name is too long, for example
            raise UsageError(f"{folder}: {(error.strerror or str(error)).lower()}") from None
        if exists:
            if not path.is_dir():
                raise UsageError(
                    f"{folder}: {path} is a file, not a folder" if path != folder else f"{folder}: is a file"
                )
            return


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files beside their targets first, and move them into place when all are complete. They are private.

    Raises
    ------
    UsageError
        The folder cannot be written to. No file was replaced then.
    """
    written: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as stream:
                written.append((stream.name, folder / name))
                stream.write(content)
        for temporary, target in written:
            Path(temporary).replace(target)
    except OSError as error:
        for temporary, _ in written:
            Path(temporary).unlink(missing_ok=True)
        raise UsageError(f"{folder}: {(error.strerror or str(error)).lower()}") from None

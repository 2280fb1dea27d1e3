"""A bar on a terminal's standard error while a file is read or something is counted; elsewhere nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def progress(path: Path, what: str) -> Iterator[Callable[[int], None]]:
    """Give a function to tell how many bytes of ``path`` have been read."""
    if not sys.stderr.isatty() or not path.is_file():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=path.stat().st_size)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to tell how much is done, of how much."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

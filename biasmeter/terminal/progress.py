"""Show a progress bar on standard error while a file is read or items are counted. Show nothing without a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def progress(path: Path, what: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of bytes read from ``path``."""
    size = path.stat().st_size if path.is_file() else 0
    with counting(what) as on_progress:
        yield lambda done: on_progress(done, size)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the number of done and of all items."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that takes a name, the number of done and of all items. Each name has a bar."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:  # what was done before does not count as speed
                tasks[name] = progress.add_task(name, total=total, completed=done)
            progress.update(tasks[name], completed=done)

        yield tell


@contextmanager
def resumable() -> Iterator[None]:
    """Print how to resume if Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("biasmeter: stopped; the same command continues with the unanswered calls\n")
        raise

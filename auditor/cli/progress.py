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


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function to tell, by a name, how much of something is done, of how much: a bar for each name."""
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
    """Say, where Ctrl-C ends the block, that nothing of it is lost."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("tiltmeter: stopped; the same command goes on with what has no answer\n")
        raise

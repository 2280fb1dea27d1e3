"""Await several coroutines: the first failure cancels the others and is raised."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def run_together(coroutines: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Await all coroutines and return their results in order."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]

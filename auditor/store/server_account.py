"""Whom PostgreSQL runs as, and acting as that user: PostgreSQL refuses to run as root.

An ordinary user's store runs as that user (no account). Root's store runs as another user that exists already; what
the keeper does in folders of that user it does *as* that user, so that nothing lying there can lead root astray.
"""

import json
import os
import pwd
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from auditor.errors import StoreUnavailable

#: The first that exists is taken: one made for us, the distribution's, or the user that owns nothing.
CANDIDATES = ("tiltmeter", "postgres", "nobody")

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user other than the one we are."""

    name: str
    uid: int
    gid: int


def choose_account(owner: int | None = None) -> Account | None:
    """Choose whom PostgreSQL runs as: None is ourselves; `owner` is the user id that has the data already."""
    if os.geteuid() != 0:
        return None
    if owner:
        return _named(owner)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return _account(entry)
    raise StoreUnavailable(f"PostgreSQL does not run as root, and none of the users {', '.join(CANDIDATES)} exists")


def name_of(account: Account | None) -> str:
    """Name the server's user: initdb needs the system to know one."""
    return account.name if account else _named(os.geteuid()).name


def act_as(account: Account | None, act: Callable[[], Any]) -> Any:
    """Call `act` as another user, in a forked child; its OSError comes back as one, its result through JSON.

    Only for a process of one thread, such as the keeper.
    """
    if account is None:
        return act()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer_as(account, act, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise OSError(f"could not act as user {account.name}")
    outcome = json.loads(answer)
    if "error" in outcome:
        number, reason, path = outcome["error"]
        raise OSError(number, reason, path)
    return outcome["result"]


def end_with_parent(signum: signal.Signals) -> Callable[[], None] | None:
    """Give what a child calls before exec so that the kernel sends it `signum` when its parent dies (Linux).

    The signal comes at the death of the *thread* that forked: the keeper has one. A change of user clears the wish,
    so this must run after it, as ``preexec_fn`` does.
    """
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 -- needed by the keeper alone, and on Linux alone

    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask


def _answer_as(account: Account, act: Callable[[], Any], writer: int) -> NoReturn:
    try:
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
        try:
            outcome = {"result": act()}
        except OSError as error:
            outcome = {"error": [error.errno, error.strerror or str(error), error.filename and str(error.filename)]}
        os.write(writer, json.dumps(outcome).encode())
    finally:
        os._exit(0)


def _named(uid: int) -> Account:
    try:
        return _account(pwd.getpwuid(uid))
    except KeyError:
        raise StoreUnavailable(
            f"user id {uid} has no name on this system (/etc/passwd): PostgreSQL needs one"
        ) from None


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)

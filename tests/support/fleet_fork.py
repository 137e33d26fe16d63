"""Forks while a book is open, and says what came of it: ``python fleet_fork.py MODE DB URL``.

A process of its own: a test runner has threads, and forking those is another matter.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from fleet_worker import declare

import counterfoil as cf

if TYPE_CHECKING:
    from collections.abc import Callable


def say(**members: object) -> None:
    """Write one line, whole: parent and child share the output."""
    os.write(1, json.dumps(members).encode() + b"\n")


def in_a_child(work: Callable[[], object]) -> int:
    """Do something in a forked child; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException as error:
        say(child="crashed", error=repr(error))
        os._exit(1)
    os._exit(0)


def attempted(who: str, act: Callable[[], object]) -> None:
    """Say how an act ended: what it returned, or the code of its refusal."""
    try:
        say(who=who, ended=str(act()))
    except cf.Refused as error:
        say(who=who, refused=error.code)


def use_the_parents_book(database: str, effect: cf.Effect[..., object]) -> None:
    """The child tries all that a book can do; the parent goes on."""
    with cf.open(database) as book:
        book.perform(effect, "before", amount="1")

        def child() -> None:
            attempted("child", lambda: book.perform(effect, "child", amount="1").status)
            attempted("child", lambda: book.resume("before").status)
            attempted("child", lambda: book.retry("before").status)
            attempted("child", lambda: book.outcome("before").status)
            attempted("child", lambda: len(book.recover()))
            book.close()

        os.waitpid(in_a_child(child), 0)
        attempted("parent", lambda: book.perform(effect, "after", amount="1").status)


def open_another_in_the_child(database: str, effect: cf.Effect[..., object]) -> None:
    """The child opens the database under its own name, and outlives the parent's book."""
    closed, told = os.pipe()
    book = cf.open(database)
    book.perform(effect, "before", amount="1")

    def child() -> None:
        def open_and_perform() -> str:
            with cf.open(database) as own:
                say(who="child", worker=own.worker_id)
                own.perform(effect, "child-1", amount="1")
                os.write(opened_there, b"x")
                os.read(closed, 1)
                return str(own.perform(effect, "child-2", amount="1").status)

        try:
            attempted("child", open_and_perform)
        finally:
            os.close(opened_there)

    opened_here, opened_there = os.pipe()
    pid = in_a_child(child)
    os.close(opened_there)
    os.read(opened_here, 1)
    say(who="parent", worker=book.worker_id)
    book.close()
    os.write(told, b"x")
    os.waitpid(pid, 0)


def open_after_the_fork(database: str, effect: cf.Effect[..., object]) -> None:
    """Parent and child each open the database once they are two."""

    def perform() -> None:
        who = "child" if os.getpid() != parent else "parent"
        with cf.open(database) as book:
            say(who=who, worker=book.worker_id)
            attempted(who, lambda: book.perform(effect, who, amount="1").status)

    parent = os.getpid()
    pid = in_a_child(perform)
    perform()
    os.waitpid(pid, 0)


def die_and_leave_a_child(database: str, effect: cf.Effect[..., object]) -> NoReturn:
    """The parent dies in its call, before its first byte; its child lives until its input ends."""
    with cf.open(database, lease="60s") as book:
        pid = in_a_child(lambda: os.read(0, 1))
        say(who="child", pid=pid)
        book.perform(effect, "o-1", amount="1")
    raise AssertionError("it was to die in its call")


MODES = {
    "use": use_the_parents_book,
    "open": open_another_in_the_child,
    "after": open_after_the_fork,
    "die": die_and_leave_a_child,
}


if __name__ == "__main__":
    mode, name, url = sys.argv[1:]
    MODES[mode](name, declare(url, {}, disturb=signal.SIGKILL if mode == "die" else 0))

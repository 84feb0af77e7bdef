"""Locks of redlockd for programs that use redis-py.

    with lock("invoice:7", host="127.0.0.1", port=7379) as held:
        db.execute(update, {"fence": held.fence})
        held.check()
"""
from __future__ import annotations

import contextlib
import math
import threading
import time
from typing import Any, Iterator, Optional, Union

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

__version__ = "0.1.0"
__all__ = ["Held", "LockLost", "LockTaken", "lock"]


class LockTaken(Exception):
    """Another client held the lock during the whole wait."""


class LockLost(Exception):
    """The lock was lost, or its validity is over: the work must stop."""


class Held:
    """A lock during its work. All times are in seconds."""

    def __init__(self, locks: redis.Redis, key: Union[str, bytes], token: Any, fence: int, ttl: float, end: float) -> None:
        self.fence = fence  #: larger than that of every earlier holder: give it to the resource
        self.lost = threading.Event()  #: set when the lock is lost, also if redlockd sends no reply
        self._locks, self._key, self._token, self._ttl = locks, key, token, ttl
        self._until, self._end = math.inf, end
        self._mutex = threading.Lock()  # one command at a time
        self._changed = threading.Condition()
        self._closed = False

    def check(self) -> None:
        """Raises LockLost if the lock is lost. Call this before each step of the work."""
        if self.lost.is_set() or time.monotonic() >= self._until:
            self._lose()
            raise LockLost(f"the lock on {self._key!r} is lost")

    def extend(self, ttl: Optional[float] = None) -> float:
        """Makes the lock last at least ttl from now, and returns how long it is valid. After an error reply, for
        example NOQUORUM (redis.ResponseError), the lock is as it was."""
        with self._mutex:
            self.check()
            sent = time.monotonic()  # the validity counts from here
            try:
                validity = self._locks.execute_command("DEXTEND", self._key, self._token, int((ttl or self._ttl) * 1000))
            except redis.ResponseError:
                raise
            except redis.RedisError as error:  # the connection has ended, and with it the lock
                self._lose()
                raise LockLost(f"the lock on {self._key!r} is lost") from error
            self.check()  # lost stays lost
            with self._changed:
                self._until = -math.inf if validity is None else min(sent + validity / 1000, self._end)
                self._changed.notify_all()
        self.check()
        return self._until - time.monotonic()

    def _lose(self) -> None:
        with self._changed:
            self._until = -math.inf
            self.lost.set()
            self._changed.notify_all()

    def _watch(self) -> None:
        """Sets lost when the validity is over."""
        with self._changed:
            while not self._closed and not self.lost.is_set():
                left = self._until - time.monotonic()
                if left <= 0:
                    self.lost.set()
                    return
                self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def _renew(self) -> None:
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._closed or self.lost.is_set(), self._ttl / 3):
                    return
            with contextlib.suppress(LockLost, redis.RedisError):  # the next extension may succeed
                self.extend()

    def _close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if time.monotonic() < self._until:  # else the end of the connection releases what may be left
            with contextlib.suppress(redis.RedisError), self._mutex:
                self._locks.execute_command("DUNLOCK", self._key, self._token)


@contextlib.contextmanager
def lock(key: Union[str, bytes], ttl: float = 30, wait: float = 60, longest: float = 600, **connection: Any) -> Iterator[Held]:
    """Holds a lock during the block, for at most `longest` seconds. All times are in seconds; connection has the
    arguments of redis.Redis. The block gives held.fence to the resource, and calls held.check() before each step.
    Raises LockTaken or LockLost."""
    # HOLD needs one connection that is never opened anew. Its read timeout is longer than the WAIT.
    with redis.Redis(socket_timeout=wait + 10, single_connection_client=True, retry=Retry(NoBackoff(), 0),
                     **connection) as locks:
        words = ["WAIT", max(int(wait * 1000), 1)] if wait else []  # WAIT 0 has no end
        granted = locks.execute_command("DLOCK", key, int(ttl * 1000), *words, "HOLD", int(longest * 1000))
        if granted is None:
            raise LockTaken(f"another client still holds the lock on {key!r}")
        held = Held(locks, key, granted[0], granted[2], ttl, time.monotonic() + longest)
        try:
            held.extend()  # confirms the lock after the WAIT
            for task in held._watch, held._renew:
                threading.Thread(target=task, daemon=True).start()
            yield held
            held.check()  # the block must not have ended too late
        finally:
            held._close()

# A lock as a context manager, for redis-py. Copy this file. Run: python redis_py_lock.py 127.0.0.1:7379
import contextlib, math, sys, threading, time
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class LockTaken(Exception):
    """Another client still holds the lock."""


class LockLost(Exception):
    """The lock was lost, or its validity is over: the work must stop."""


class Held:
    def __init__(self, locks, key, token, fence, ttl, end):
        self.fence, self._until, self._end = fence, math.inf, end
        self._locks, self._extension = locks, ("DEXTEND", key, token, ttl)

    def check(self):
        """Raises LockLost if the lock is lost. Call this before each step of the work."""
        if time.monotonic() >= self._until:
            raise LockLost(f"the lock on {self._extension[1]!r} is lost")

    def _extend(self):
        sent = time.monotonic()  # the validity counts from here
        validity = self._locks.execute_command(*self._extension)
        late = time.monotonic() >= self._until  # lost stays lost
        self._until = -math.inf if validity is None or late else min(sent + validity / 1000, self._end)

    def _renew(self, ended, pause):
        while not ended.wait(pause) and time.monotonic() < self._until:
            try:
                self._extend()
            except redis.ResponseError:  # for example NOQUORUM: the next extension may succeed
                pass
            except redis.RedisError:  # the connection has ended, and with it the lock
                self._until = -math.inf


@contextlib.contextmanager
def lock(key, ttl=30, wait=60, longest=600, **connection):
    """Holds a lock during the block, for at most `longest` seconds. All times are in seconds; connection has the
    arguments of redis.Redis. The block gives held.fence to the resource, and calls held.check() before each step."""
    # HOLD needs one connection that is never opened anew. Its read timeout is longer than the WAIT.
    with redis.Redis(socket_timeout=wait + 10, single_connection_client=True, retry=Retry(NoBackoff(), 0),
                     **connection) as locks:
        ms = [int(seconds * 1000) for seconds in (ttl, wait, longest)]
        granted = locks.execute_command("DLOCK", key, ms[0], "WAIT", ms[1], "HOLD", ms[2])
        if granted is None:
            raise LockTaken(f"another client still holds the lock on {key!r}")
        held = Held(locks, key, granted[0], granted[2], ms[0], time.monotonic() + longest)
        ended = threading.Event()
        try:
            held._extend()  # confirms the lock after the WAIT
            held.check()
            threading.Thread(target=held._renew, args=(ended, ttl / 3), daemon=True).start()
            yield held
            held.check()  # the block must not have ended too late
        finally:
            ended.set()
            if time.monotonic() < held._until:  # else the end of the connection releases what may be left
                with contextlib.suppress(redis.RedisError):
                    locks.execute_command("DUNLOCK", key, granted[0])


if __name__ == "__main__":  # a short piece of work, then two that last until the lock is lost
    host, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7379").rsplit(":", 1)
    for seconds in 0, 3600, 3600:
        try:
            with lock("invoice:7", ttl=10, wait=600, host=host, port=int(port)) as held:
                print(f"granted fence {held.fence}", flush=True)
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    held.check()
                    time.sleep(0.01)
            print("released", flush=True)
        except LockLost:
            print("lost", flush=True)

"""Lock libraries of Python, unmodified, that take the daemon for one Redis.
Argument: redis-py, redis-py-asyncio, python-redis-lock, pottery, aioredlock or redlock-ng."""
import asyncio
import concurrent.futures
import importlib.metadata
import inspect
import logging
import os
import sys
import types

import redis
import redis.asyncio

HOST, PORT = os.environ["REDLOCKD_ADDR"].rsplit(":", 1)
KEY = os.environ["REDLOCKD_KEY"]
ADDRESS = {"host": HOST, "port": int(PORT)}
logging.disable(logging.CRITICAL)


class RedisPy:
    package = "redis"
    silent = False  # about a release of what is not held
    more = None  # what else the library has, beside locks

    def __init__(self):
        self.client = redis.Redis(**ADDRESS)

    def make(self, name, seconds):
        return self.client.lock(name, timeout=seconds)

    def take(self, lock):
        return lock.acquire(blocking=False)

    def wait(self, lock):
        return lock.acquire(blocking=True, blocking_timeout=20)

    def extend(self, lock):
        return lock.extend(10) and lock.extend(25, replace_ttl=True) and lock.reacquire()

    def release(self, lock):
        return lock.release()

    def close(self):
        return self.client.close()


class RedisPyAsyncio(RedisPy):
    def __init__(self):
        self.client = redis.asyncio.Redis(**ADDRESS)

    async def extend(self, lock):
        return await lock.extend(10) and await lock.extend(25, replace_ttl=True) and await lock.reacquire()

    def close(self):
        return self.client.aclose()


class PythonRedisLock(RedisPy):
    package = "python-redis-lock"

    def make(self, name, seconds):
        import redis_lock
        return redis_lock.Lock(self.client, name, expire=seconds)

    def wait(self, lock):
        return lock.acquire(blocking=True, timeout=19)

    def extend(self, lock):
        lock.extend(expire=25)
        return True


class Pottery(RedisPy):
    package = "pottery"

    def make(self, name, seconds):
        from pottery import Redlock
        return Redlock(key=name, masters={self.client}, auto_release_time=seconds)

    def wait(self, lock):
        return lock.acquire(blocking=True, timeout=20)

    def extend(self, lock):
        lock.extend()
        return 0 < lock.locked() <= 20

    def more(self):
        """NextID, its ids, from several threads at once."""
        import pottery
        first = next(pottery.NextID(key="interop", masters={self.client}))
        counters = [pottery.NextID(key="interop", masters={redis.Redis(**ADDRESS)}) for _ in range(4)]
        with concurrent.futures.ThreadPoolExecutor() as threads:
            ids = [*threads.map(lambda counter: [next(counter) for _ in range(10)], counters)]
        assert all(one == sorted(one) and first < one[0] for one in ids), ids
        assert len({i for one in ids for i in one}) == 40, ids


class Aioredlock(RedisPy):
    package = "aioredlock"
    silent = True

    def __init__(self):
        import aioredlock
        self.client = aioredlock.Aioredlock([(HOST, int(PORT))], retry_count=1)
        self.error = aioredlock.LockError

    def make(self, name, seconds):
        return types.SimpleNamespace(name=name, seconds=seconds, lock=None)

    async def take(self, lock):
        try:
            lock.lock = await self.client.lock(lock.name, lock_timeout=lock.seconds)
        except self.error:
            return False
        return lock.lock.valid

    async def wait(self, lock):
        for _ in range(200):
            if await self.take(lock):
                return True
            await asyncio.sleep(0.1)

    async def extend(self, lock):
        await self.client.extend(lock.lock, 25)
        return await self.client.is_locked(lock.lock)

    def release(self, lock):
        return self.client.unlock(lock.lock)

    def close(self):
        return self.client.destroy()


class RedlockNg(Aioredlock):
    package = "redlock-ng"

    def __init__(self):
        import redlock
        # Its 100 ms for a reply are too short on a busy machine.
        self.client = redlock.Redlock(redlock.RedlockConfig(masters=[f"redis://{HOST}:{PORT}"], socket_timeout=5), retry_count=0)

    def take(self, lock, blocking=False):
        lock.lock = self.client.acquire(lock.name, lock.seconds * 1000, blocking)
        return lock.lock is not None

    def wait(self, lock):
        return self.take(lock, True)

    def extend(self, lock):
        return self.client.extend(lock.lock, 25000)

    def release(self, lock):
        self.client.release(lock.lock)

    def close(self):
        for instance in self.client.client.instances:
            instance.close()


LIBRARIES = {"redis-py": RedisPy, "redis-py-asyncio": RedisPyAsyncio, "python-redis-lock": PythonRedisLock,
             "pottery": Pottery, "aioredlock": Aioredlock, "redlock-ng": RedlockNg}


def say(*words):
    print(*words, flush=True)


def ask(what):
    say("wait", what)
    assert sys.stdin.readline().strip() == what, f"the driver did not answer {what}"


async def done(value):
    return await value if inspect.isawaitable(value) else value


async def fails(value):
    try:
        await done(value())
    except Exception:
        return True
    return False


async def story(library):
    make = lambda name, seconds: library.make(f"{KEY}:{name}", seconds)
    take, release = lambda lock: done(library.take(lock)), lambda lock: done(library.release(lock))
    one, two = make("a", 20), make("a", 20)
    assert await take(one)
    yield "acquire"
    assert not await take(two)
    yield "contention"
    assert await done(library.extend(one))
    assert not await take(two)
    yield "extend"
    await release(one)
    assert await fails(lambda: library.release(one)) or library.silent, "released twice"
    assert await take(two)
    await release(two)
    yield "release"
    late, next_one = make("b", 1), make("b", 20)
    assert await take(late)
    assert await done(library.wait(next_one)), "it does not expire"
    assert await fails(lambda: library.release(late)) or library.silent, "what has expired can be released"
    assert not await take(make("b", 20)), "a stale release has freed the lock"
    await release(next_one)
    yield "expiry"
    held = make("c", 20)
    assert await take(held)
    ask("kill")
    assert not await take(make("c", 20))
    assert await done(library.extend(held))
    await release(held)
    again = make("c", 20)
    assert await take(again)
    await release(again)
    if library.more:
        library.more()
    yield "killed"
    await done(library.close())
    ask("gone")
    yield "close"


async def main():
    library = LIBRARIES[sys.argv[1]]()
    say("library", importlib.metadata.version(library.package))
    steps = story(library)
    while True:
        try:
            say("ok", await anext(steps))
        except StopAsyncIteration:
            return
        except Exception as error:
            import traceback
            traceback.print_exc()
            say("fail", sys.argv[1], repr(error).replace("\n", " "))
            sys.exit(1)


asyncio.run(main())

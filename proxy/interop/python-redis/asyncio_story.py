"""The story told through redis-py's asyncio class, with many locks at a time."""
import asyncio

import redis.asyncio

from story import *


class Story:
    def __init__(self):
        self.client = (redis.asyncio.RedisCluster if CLUSTER else redis.asyncio.Redis)(**ADDRESS, **OPTIONS)
        self.do = self.client.execute_command

    async def connect(self):
        await self.client.echo("hello")

    async def ping(self):
        same(await self.client.ping(), True)
        info = await self.do("CLIENT INFO")
        resp = info["resp"] if isinstance(info, dict) else info.decode().split("resp=")[1][0]
        say("protocol", resp.strip())

    async def password(self):
        if not PASSWORD:
            say("skip password the daemon has none")
            return False
        async with redis.asyncio.Redis(**guarded(PASSWORD)) as right:
            same(await right.ping(), True)
        try:
            async with redis.asyncio.Redis(**guarded("wrong")) as wrong:
                await wrong.ping()
        except redis.exceptions.AuthenticationError:
            return True
        raise AssertionError("a wrong password is not refused")

    async def dlock(self):
        self.token, _, self.fence = grant(await self.do("DLOCK", KEY, 30000), 30000)

    async def taken(self):
        same(await self.do("DLOCK", KEY, 30000), None)
        same(await asyncio.gather(*(self.do("DLOCK", KEY, 30000) for _ in range(8))), [None] * 8)

    async def dunlock(self):
        same(await self.do("DUNLOCK", KEY, "not-the-token"), 0)
        same(await self.do("DUNLOCK", KEY, self.token), 1)

    async def dextend(self):
        token, _, later = grant(await self.do("DLOCK", KEY, 20000), 20000)
        check(later > self.fence, f"the fence does not rise: {self.fence}, {later}")
        validity = await self.do("DEXTEND", KEY, token, 40000)
        check(30000 < validity <= 40000, f"validity {validity!r}")
        same(await self.do("DEXTEND", KEY, "not-the-token", 40000), None)
        same(await self.do("DUNLOCK", KEY, token), 1)

    async def dnextid(self):
        first = await self.do("DNEXTID", KEY)
        second = await self.do("DNEXTID", KEY)
        check(0 < first < second, f"{first!r}, then {second!r}")

    async def error(self):
        try:
            await self.do("DLOCK", KEY, 5)
        except redis.exceptions.ResponseError as e:
            check("ttl" in str(e), f"error text {e}")
        else:
            raise AssertionError("a ttl of 5 ms is accepted")
        same(await self.client.ping(), True)

    async def pipeline(self):
        async def hundred(*rest):
            async with (self.client.pipeline() if CLUSTER else self.client.pipeline(transaction=False)) as p:
                for i in range(100):
                    p.execute_command(rest[0], f"{KEY}:{i}", *rest[1:])
                return await p.execute()

        grants = await hundred("DLOCK", 30000, "TOKEN", "interop-token")
        check([g[0] for g in grants] == [b"interop-token"] * 100, f"{grants!r}")
        same(await hundred("DUNLOCK", "interop-token"), [1] * 100)

    async def dmlock(self):
        home = {"target_nodes": self.client.get_node_from_key(KEY)} if CLUSTER else {}
        for keys, where in (([f"{{{KEY}}}:a", f"{{{KEY}}}:b"], {}), ([f"{KEY}:a", f"{KEY}:b"], home)):
            token, _, _ = grant(await self.do("DMLOCK", 30000, 2, *keys, **where), 30000)
            same(await self.do("DMUNLOCK", token, 2, *keys, **where), 2)

    async def wait(self):
        grant(await self.do("DLOCK", KEY, 100), 100)
        token, _, _ = grant(await self.do("DLOCK", KEY, 30000, "WAIT", 20000), 30000)
        same(await self.do("DUNLOCK", KEY, token), 1)

    async def reconnect(self):
        wait(OUTAGE)
        for _ in range(200):
            try:
                await self.pipeline()
                break
            except LOST:
                await asyncio.sleep(0.05)
        token, _, _ = grant(await self.do("DLOCK", KEY, 30000), 30000)
        same(await self.do("DUNLOCK", KEY, token), 1)

    async def close(self):
        await (self.client.aclose if hasattr(self.client, "aclose") else self.client.close)()
        if not CLUSTER:
            await self.client.connection_pool.disconnect()
        wait("gone")


STEPS = "connect ping password dlock taken dunlock dextend dnextid error pipeline dmlock wait reconnect close".split()


async def roll(client):
    """Locks with four tasks and one client, until the driver says so."""
    say("ready")
    r = Rolled()

    async def pair(i, waits):
        name, token, words = r.lock(i, waits)
        r.waits += waits
        began, tries = time.monotonic(), 0
        while True:
            try:
                check(await client.execute_command(*words) is not None, "DLOCK: nil")
                break
            except redis.exceptions.RedisError as e:
                r.again(e, waits, began, tries)
                tries += 1
                await asyncio.sleep(0.05)
        await client.execute_command("DUNLOCK", name, token)

    async def work(i):
        n = 0
        while not r.over:
            await asyncio.sleep(0.02)
            try:
                await pair(i, i == 0 and n % 3 == 0)
            except Exception as e:
                r.fail(e)
            n += 1
            r.pairs += 1

    await asyncio.gather(*(work(i) for i in range(4)))
    r.report()


async def main():
    story = Story()
    if os.environ.get("REDLOCKD_ROLLING"):
        await story.connect()
        return await roll(story.client)
    for step in STEPS:
        try:
            if await getattr(story, step)() is not False:
                say("ok", step)
        except Exception as e:
            tell(step, e)


asyncio.run(main())

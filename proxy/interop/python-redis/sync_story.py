"""The story told through redis-py's Redis class."""
import os
import sys
import threading
import time

import redis

from story import *


def connect():
    client.execute_command("ECHO", "hello", **({"target_nodes": client.get_random_node()} if CLUSTER else {}))


def ping():
    same(client.ping(), True)
    info = client.execute_command("CLIENT INFO")
    resp = info["resp"] if isinstance(info, dict) else info.decode().split("resp=")[1][0]
    say("protocol", resp.strip())


def password():
    if not PASSWORD:
        say("skip password the daemon has none")
        return False
    with redis.Redis(**guarded(PASSWORD)) as right:
        same(right.ping(), True)
    try:
        redis.Redis(**guarded("wrong")).ping()
    except redis.exceptions.AuthenticationError:
        return True
    raise AssertionError("a wrong password is not refused")


def dlock():
    global token, fence
    token, _, fence = grant(client.execute_command("DLOCK", KEY, 30000), 30000)


def taken():
    same(client.execute_command("DLOCK", KEY, 30000), None)


def dunlock():
    same(client.execute_command("DUNLOCK", KEY, "not-the-token"), 0)
    same(client.execute_command("DUNLOCK", KEY, token), 1)


def dextend():
    token, _, later = grant(client.execute_command("DLOCK", KEY, 20000), 20000)
    check(later > fence, f"the fence does not rise: {fence}, {later}")
    validity = client.execute_command("DEXTEND", KEY, token, 40000)
    check(30000 < validity <= 40000, f"validity {validity!r}")
    same(client.execute_command("DEXTEND", KEY, "not-the-token", 40000), None)
    same(client.execute_command("DUNLOCK", KEY, token), 1)


def dnextid():
    first, second = (client.execute_command("DNEXTID", KEY) for _ in range(2))
    check(0 < first < second, f"{first!r}, then {second!r}")


def error():
    try:
        client.execute_command("DLOCK", KEY, 5)
    except redis.exceptions.ResponseError as e:
        check("ttl" in str(e), f"error text {e}")
    else:
        raise AssertionError("a ttl of 5 ms is accepted")
    same(client.ping(), True)


def pipeline():
    def hundred(*rest):
        with (client.pipeline() if CLUSTER else client.pipeline(transaction=False)) as p:
            for i in range(100):
                p.execute_command(rest[0], f"{KEY}:{i}", *rest[1:])
            return p.execute()

    grants = hundred("DLOCK", 30000, "TOKEN", "interop-token")
    check([g[0] for g in grants] == [b"interop-token"] * 100, f"{grants!r}")
    same(hundred("DUNLOCK", "interop-token"), [1] * 100)


def dmlock():
    """In one slot the library finds the keys with COMMAND GETKEYS; over slots it is told a node."""
    home = {"target_nodes": client.get_node_from_key(KEY)} if CLUSTER else {}
    for keys, where in (([f"{{{KEY}}}:a", f"{{{KEY}}}:b"], {}), ([f"{KEY}:a", f"{KEY}:b"], home)):
        token, _, _ = grant(client.execute_command("DMLOCK", 30000, 2, *keys, **where), 30000)
        same(client.execute_command("DMUNLOCK", token, 2, *keys, **where), 2)


def turn():
    grant(client.execute_command("DLOCK", KEY, 100), 100)
    token, _, _ = grant(client.execute_command("DLOCK", KEY, 30000, "WAIT", 20000), 30000)
    same(client.execute_command("DUNLOCK", KEY, token), 1)


turn.__name__ = "wait"


def reconnect():
    wait(OUTAGE)
    for attempt in range(200):
        try:
            pipeline()
            break
        except LOST:
            time.sleep(0.05)
    token, _, _ = grant(client.execute_command("DLOCK", KEY, 30000), 30000)
    same(client.execute_command("DUNLOCK", KEY, token), 1)


def close():
    client.close()
    if not CLUSTER:
        client.connection_pool.disconnect()  # before 5.0 close leaves the pool
    wait("gone")


def roll():
    """Locks with four threads and one client, until the driver says so."""
    say("ready")
    r = Rolled()

    def pair(i, waits):
        name, token, words = r.lock(i, waits)
        r.waits += waits
        began, tries = time.monotonic(), 0
        while True:
            try:
                check(client.execute_command(*words) is not None, "DLOCK: nil")
                break
            except redis.exceptions.RedisError as e:
                r.again(e, waits, began, tries)
                tries += 1
                time.sleep(0.05)
        client.execute_command("DUNLOCK", name, token)

    def work(i):
        n = 0
        while not r.over:
            time.sleep(0.02)
            try:
                pair(i, i == 0 and n % 3 == 0)
            except Exception as e:
                r.fail(e)
            n += 1
            r.pairs += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    r.report()


client = (redis.RedisCluster if CLUSTER else redis.Redis)(**ADDRESS, **OPTIONS)
if os.environ.get("REDLOCKD_ROLLING"):
    roll()
    sys.exit(0)
for step in (connect, ping, password, dlock, taken, dunlock, dextend, dnextid, error, pipeline, dmlock, turn, reconnect, close):
    try:
        if step() is not False:
            say("ok", step.__name__)
    except Exception as e:
        tell(step.__name__, e)

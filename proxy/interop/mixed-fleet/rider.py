"""Some users of redis-py's Lock, unmodified, over the daemon: REDLOCKD_ADDR names
it, argv: the key, how many users, and for how many seconds. Each prints what it
was told, a call a line as JSON, in ns of the machine's monotonic clock."""
import json
import os
import random
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.exceptions import LockError, RedisError
from redis.retry import Retry

HOST, PORT = os.environ["REDLOCKD_ADDR"].rsplit(":", 1)
KEY, USERS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
out = threading.Lock()


def counted(seconds):
    """What a careful client relies on of a lease."""
    return int(seconds * 1e9 * 0.99) - 2_000_000


def told(user, op, token, call, until=None):
    """Makes the call and prints it; returns the answer, None if it is not known.
    until is the deadline of a yes, from the moment the call leaves."""
    event = {"client": user, "op": op, "token": token, "invoke": time.monotonic_ns()}
    try:
        answer = bool(call())
    except LockError:  # the library's no
        answer = False
    except RedisError:
        answer = None
    event["complete"] = time.monotonic_ns()
    event["outcome"] = "unknown" if answer is None else "ok" if answer or op == "release" else "no"
    if op == "release":
        event["released"] = bool(answer)
    elif answer:
        event["until"] = until(event["invoke"])
    with out:
        print(json.dumps(event), flush=True)
    return event if answer else None


def use(user, end):
    chance = random.Random()
    client = redis.Redis(host=HOST, port=int(PORT), retry=Retry(NoBackoff(), 0))
    serial = 0
    while time.monotonic() < end:
        serial += 1
        seconds = chance.randrange(100, 1000) / 1000
        token = f"redis-py-{user}-{serial}"
        lock = client.lock(KEY, timeout=seconds, thread_local=False)
        held = told(user, "acquire", token, lambda: lock.acquire(blocking=False, token=token), lambda at: at + counted(seconds))
        if held is None:
            time.sleep(chance.random() * 0.03)
            continue
        time.sleep(chance.random() * 0.01)
        if chance.random() < 0.3:
            told(user, "extend", token, lambda: lock.extend(seconds, replace_ttl=True), lambda at: at + counted(seconds))
        elif chance.random() < 0.3:
            more = 0.3
            told(user, "extend", token, lambda: lock.extend(more), lambda at: max(at, held["until"]) + counted(more))
        if chance.random() < 0.05:
            continue  # never says that it is done
        if chance.random() < 0.1:
            time.sleep(seconds)  # comes too late
        told(user, "release", token, lambda: lock.release() is None)
        time.sleep(chance.random() * 0.02)
    client.close()


users = [threading.Thread(target=use, args=(n, time.monotonic() + SECONDS)) for n in range(USERS)]
for one in users:
    one.start()
for one in users:
    one.join()

"""A lock library of Python that has to take a lock which others keep busy. Argument: redis-py or python-redis-lock.
It prints how many ms each acquire took, until its standard input ends."""
import importlib.metadata
import os
import sys
import threading
import time

import redis

HOST, PORT = os.environ["REDLOCKD_ADDR"].rsplit(":", 1)
client = redis.Redis(host=HOST, port=int(PORT))


def make():
    if sys.argv[1] == "redis-py":
        return client.lock(os.environ["REDLOCKD_KEY"], timeout=10)
    import redis_lock
    return redis_lock.Lock(client, os.environ["REDLOCKD_KEY"], expire=10)


def watch():
    sys.stdin.read()
    os._exit(0)


print("library", importlib.metadata.version("redis" if sys.argv[1] == "redis-py" else sys.argv[1]), flush=True)
threading.Thread(target=watch, daemon=True).start()
while True:
    lock = make()
    began = time.monotonic()
    while not lock.acquire():
        pass
    print("took", int((time.monotonic() - began) * 1000), flush=True)
    time.sleep(0.02)
    lock.release()
    time.sleep(0.02)

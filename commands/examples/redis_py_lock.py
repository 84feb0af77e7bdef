# The package redlockd-client for redis-py (commands/clients). Run: python redis_py_lock.py 127.0.0.1:7379
import sys
from redlockd_client import LockLost, lock

# A short piece of work, then two that last until the lock is lost.
host, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7379").rsplit(":", 1)
for seconds in 0, 3600, 3600:
    try:
        with lock("invoice:7", ttl=10, wait=600, host=host, port=int(port)) as held:
            print(f"granted fence {held.fence}", flush=True)
            held.lost.wait(seconds)
            held.check()
        print("released", flush=True)
    except LockLost:
        print("lost", flush=True)

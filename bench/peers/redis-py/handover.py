"""Callers that all want one key, with redis-py's Lock and its polling.

Arguments: callers, seconds of warm-up, seconds of measurement, one address.
"""
import json
import sys
import threading
import time

import redis

callers, warm_up, span, address = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
host, port = address.split(":")
client = redis.Redis(host=host, port=int(port), max_connections=callers + 2)

guard = threading.Lock()
waits, failed, ended = [], 0, False
last, handed = None, 0


def caller():
    global failed, last, handed
    me = threading.get_ident()
    lock = client.lock("bench:handover:py", timeout=10)
    while not ended:
        began = time.perf_counter()
        try:
            lock.acquire()
            waited = time.perf_counter() - began
            with guard:
                handed += last != me
                last = me
            lock.release()
        except redis.RedisError:
            with guard:
                failed += 1
            continue
        with guard:
            waits.append(waited * 1e6)


def quantile(values, q):
    return values[int(q * (len(values) - 1))] if values else 0


threads = [threading.Thread(target=caller, daemon=True) for _ in range(callers)]
for thread in threads:
    thread.start()
time.sleep(warm_up)
print("begin", flush=True)
with guard:
    waits.clear()
    failed = handed = 0
began = time.perf_counter()
time.sleep(span)
took = time.perf_counter() - began
with guard:
    done, over = sorted(waits), handed
print(json.dumps({
    "pairs": len(done), "failed": failed, "handed": over, "seconds": took,
    "p50": quantile(done, 0.5), "p90": quantile(done, 0.9), "p99": quantile(done, 0.99), "p999": quantile(done, 0.999),
}), flush=True)
ended = True

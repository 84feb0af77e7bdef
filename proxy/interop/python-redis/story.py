"""The story's judgements, shared by the sync and the asyncio program: what was
answered, and is it what the protocol says?"""
import os
import sys

import redis

HOST, PORT = os.environ["REDLOCKD_ADDR"].rsplit(":", 1)
KEY = os.environ["REDLOCKD_KEY"]
PASSWORD = os.environ.get("REDLOCKD_PASSWORD")
ADDRESS = {"host": HOST, "port": int(PORT)}
OPTIONS = {"protocol-2": {"protocol": 2}, "protocol-3": {"protocol": 3}, "default": {}, "cluster": {}}[sys.argv[1]]
CLUSTER = sys.argv[1] == "cluster"
OUTAGE = os.environ.get("REDLOCKD_OUTAGE", "restart")
LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, redis.exceptions.ClusterError)


def guarded(password):
    """Arguments for a client of the daemon that wants a password."""
    host, port = os.environ["REDLOCKD_PASSWORD_ADDR"].rsplit(":", 1)
    return {"host": host, "port": int(port), "password": password, **OPTIONS}


def say(*words):
    print(*words, flush=True)


def wait(what):
    say("wait", what)
    check(sys.stdin.readline().strip() == what, f"the driver did not answer {what}")


def check(holds, why):
    if not holds:
        raise AssertionError(why)


def grant(reply, ttl):
    """(token, validity, fence) of a reply to DLOCK."""
    check(isinstance(reply, list) and len(reply) == 3, f"a grant has three elements: {reply!r}")
    token, validity, fence = reply
    check(isinstance(token, bytes) and len(token) == 27, f"token {token!r}")
    check(type(validity) is int and 0 < validity <= ttl, f"validity {validity!r}")
    check(type(fence) is int and fence > 2**50, f"fence {fence!r}")
    return token, validity, fence


def same(got, wanted):
    check(type(got) is type(wanted) and got == wanted, f"got {got!r}, wanted {wanted!r}")


def tell(step, error):
    say("fail", step, repr(error).replace("\n", " "))
    sys.exit(1)


say("library", redis.__version__)

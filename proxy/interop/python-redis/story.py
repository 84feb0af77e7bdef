"""The story's judgements, shared by the sync and the asyncio program: what was
answered, and is it what the protocol says?"""
import os
import sys
import threading
import time

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


class Rolled:
    """What became of the commands while daemons restarted."""

    def __init__(self):
        self.pairs = self.waits = self.refused = self.failed = 0
        self.why = []
        self.over = False
        threading.Thread(target=self.await_end, daemon=True).start()

    def await_end(self):
        sys.stdin.readline()
        self.over = True

    def fail(self, error):
        self.failed += 1
        if len(self.why) < 3:
            self.why.append(repr(error).replace("\n", " "))

    def lock(self, i, waits):
        """The name, the token and the arguments of a lock."""
        name, token = f"{KEY}:w" if waits else f"{KEY}:{i}", f"rolling-{KEY}-{i}"  # the driver takes the first, too
        return name, token, ["DLOCK", name, 10000, "TOKEN", token, *(["WAIT", 2000] if waits else [])]

    def again(self, error, waits, began, tries):
        """A wait that is refused is repeated until it is granted."""
        if not waits or "SHUTDOWN" not in str(error) or time.monotonic() > began + 30:
            raise error
        self.refused += tries == 0

    def report(self):
        for text in self.why:
            say("failure", text)
        say("rolled", self.pairs, self.waits, self.refused, self.failed)


say("library", redis.__version__)

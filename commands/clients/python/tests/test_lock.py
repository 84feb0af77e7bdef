"""Tests against a daemon: python test_lock.py ADDRESS, or REDLOCKD_ADDR."""
import os
import sys
import unittest

import redis

from redlockd_client import LockLost, LockTaken, lock

host, port = (sys.argv.pop(1) if len(sys.argv) > 1 else os.environ.get("REDLOCKD_ADDR", "127.0.0.1:7379")).rsplit(":", 1)
SERVER = {"host": host, "port": int(port)}


class LockTest(unittest.TestCase):
    def setUp(self):
        self.key = self.id()
        self.other = redis.Redis(**SERVER)
        self.addCleanup(self.other.close)

    def ask(self, *words):
        return self.other.execute_command(*words)

    def test_holds_during_the_block_with_a_rising_fence(self):
        fences = []
        for _ in range(2):
            with lock(self.key, ttl=10, **SERVER) as held:
                fences.append(held.fence)
                held.check()
                self.assertIsNone(self.ask("DLOCK", self.key, 1000))
        self.assertGreater(fences[0], 10**15)
        self.assertGreater(fences[1], fences[0])
        self.assertIsNotNone(self.ask("DLOCK", self.key, 1000), "the lock is not released after the block")

    def test_reports_a_lock_that_is_taken(self):
        self.ask("DLOCK", self.key, 30000)
        for wait in 0.001, 0:
            with self.assertRaises(LockTaken), lock(self.key, wait=wait, **SERVER):
                self.fail("it works without the lock")

    def test_signals_the_loss(self):
        with self.assertRaises(LockLost), lock(self.key, ttl=10, **SERVER) as held:
            self.ask("DFORCE", self.key)
            self.assertTrue(held.lost.wait(60))
            held.check()

    def test_ends_at_its_longest(self):
        with self.assertRaises(LockLost), lock(self.key, ttl=10, longest=0.3, **SERVER) as held:
            self.assertTrue(held.lost.wait(60))

    def test_extend_lengthens_the_lock(self):
        with self.assertRaises(LockLost), lock(self.key, ttl=10, **SERVER) as held:
            validity = held.extend(25)
            self.assertTrue(10 < validity <= 25, validity)
            self.assertGreater(self.ask("PTTL", self.key), 10000)
            self.ask("DFORCE", self.key)
            held.extend()

    def test_releases_after_an_error_in_the_block(self):
        with self.assertRaises(KeyError), lock(self.key, ttl=10, **SERVER):
            raise KeyError
        self.assertIsNotNone(self.ask("DLOCK", self.key, 1000))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    print("passed")

# redis-py: one UPDATE under a lock. Run: python redis_py.py 127.0.0.1:7379
import sqlite3, sys, time
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

host, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7379").rsplit(":", 1)
db = sqlite3.connect(":memory:")  # yours; the resource keeps the largest fence beside its data
db.executescript("CREATE TABLE invoices (id, state, fence); INSERT INTO invoices VALUES (7, 'open', 0)")

# HOLD needs one connection that is never opened anew. Its read timeout (70 s) is longer than the WAIT (60 s).
with redis.Redis(host, int(port), socket_timeout=70, single_connection_client=True,
                 retry=Retry(NoBackoff(), 0), decode_responses=True) as locks:
    granted = locks.execute_command("DLOCK", "invoice:7", 30000, "WAIT", 60000, "HOLD", 600000)
    if granted is None:
        raise SystemExit("another client still holds the lock")
    token, validity, fence = granted
    try:
        print(f"granted fence {fence}, validity {validity} ms")
        sent = time.monotonic()
        validity = locks.execute_command("DEXTEND", "invoice:7", token, 30000)  # confirms the lock after a WAIT
        if validity is None:
            raise SystemExit("the lock was lost")
        stop_at = sent + validity / 1000  # longer work sends DEXTEND again before this time
        print(f"confirmed validity {validity} ms")
        if time.monotonic() >= stop_at:
            raise SystemExit("the validity is over")
        with db:
            changed = db.execute("UPDATE invoices SET state = 'sent', fence = :fence "
                                 "WHERE id = 7 AND fence <= :fence", {"fence": fence})
        if changed.rowcount == 0:
            raise SystemExit("a later holder has already written")
        print(f"update {changed.rowcount} row with fence {fence}")
    finally:
        if locks.execute_command("DUNLOCK", "invoice:7", token) != 1:
            raise SystemExit("the lock was over before its release")
        print("released 1")

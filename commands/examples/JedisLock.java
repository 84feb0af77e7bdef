// A lock for try-with-resources, with Jedis. Copy this file. Run: java -cp 'LIBRARIES/*' JedisLock.java 127.0.0.1:7379
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.*;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.*;
import redis.clients.jedis.util.SafeEncoder;

/** Holds a lock until close(). The work gives fence to the resource, and calls check() before each step. */
public final class JedisLock implements AutoCloseable {
    public static final class Taken extends RuntimeException {
        Taken(String key) { super("another client still holds the lock on " + key); }
    }

    public static final class Lost extends RuntimeException { // or its validity is over: the work must stop
        Lost(String key) { super("the lock on " + key + " is lost"); }
    }

    private enum Command implements ProtocolCommand {
        DLOCK, DEXTEND, DUNLOCK;

        public byte[] getRaw() {
            return SafeEncoder.encode(name());
        }
    }

    public final long fence;
    private final Jedis locks;
    private final String key, token, ttl;
    private final long end; // of the longest hold
    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile long until = System.nanoTime() + Long.MAX_VALUE / 2;
    private volatile boolean lost;

    /** Waits at most wait for the lock, and keeps it at most for longest. */
    public JedisLock(HostAndPort server, DefaultJedisClientConfig.Builder config, String key,
            Duration ttl, Duration wait, Duration longest) {
        this.key = key;
        this.ttl = "" + ttl.toMillis();
        // The read timeout is longer than the WAIT. A Jedis is one connection that is never opened anew, as HOLD needs it.
        locks = new Jedis(server, config.socketTimeoutMillis((int) wait.toMillis() + 10_000).build());
        try {
            List<?> granted = (List<?>) send(Command.DLOCK, key, this.ttl,
                    "WAIT", "" + wait.toMillis(), "HOLD", "" + longest.toMillis());
            if (granted == null) throw new Taken(key);
            token = (String) granted.get(0);
            fence = (Long) granted.get(2);
            end = System.nanoTime() + longest.toNanos();
            extend(); // confirms the lock after the WAIT
            check();
        } catch (RuntimeException e) {
            locks.close(); // redlockd then releases what may be left of the lock
            throw e;
        }
        Thread renewal = new Thread(() -> renew(ttl.toMillis() / 3), "renews " + key);
        renewal.setDaemon(true);
        renewal.start();
    }

    /** Throws Lost if the lock is lost. */
    public void check() {
        if (System.nanoTime() - until >= 0) lost = true;
        if (lost) throw new Lost(key);
    }

    private synchronized Object send(Command command, String... words) { // String, Long, List or null
        return SafeEncoder.encodeObject(locks.sendCommand(command, words));
    }

    private void extend() {
        long sent = System.nanoTime(); // the validity counts from here
        Long validity = (Long) send(Command.DEXTEND, key, token, ttl);
        check();
        if (validity == null) lost = true;
        else until = sent + Math.min(validity * 1_000_000, end - sent);
    }

    private void renew(long pause) {
        try {
            while (!closed.await(pause, TimeUnit.MILLISECONDS) && !lost) {
                try {
                    extend();
                } catch (JedisDataException e) {
                    // for example NOQUORUM: the next extension may succeed
                }
            }
        } catch (InterruptedException | JedisException | Lost e) {
            lost = true; // the connection has ended, and with it the lock
        }
    }

    /** Releases the lock. Throws Lost if the work ended too late. */
    @Override
    public void close() {
        closed.countDown();
        try {
            check();
            send(Command.DUNLOCK, key, token);
        } catch (JedisException e) {
            // the end of the connection releases the lock
        } finally {
            locks.close();
        }
    }

    /** A short piece of work, then two that last until the lock is lost. */
    public static void main(String[] args) throws InterruptedException {
        HostAndPort server = HostAndPort.from(args.length > 0 ? args[0] : "127.0.0.1:7379");
        for (long seconds : new long[] {0, 3600, 3600}) {
            try (JedisLock held = new JedisLock(server, DefaultJedisClientConfig.builder(), "invoice:7",
                    Duration.ofSeconds(10), Duration.ofMinutes(10), Duration.ofMinutes(10))) {
                System.out.println("granted fence " + held.fence);
                for (long end = System.nanoTime() + seconds * 1_000_000_000; System.nanoTime() - end < 0; Thread.sleep(10)) {
                    held.check();
                }
            } catch (Lost e) {
                System.out.println("lost");
                continue;
            }
            System.out.println("released");
        }
    }
}

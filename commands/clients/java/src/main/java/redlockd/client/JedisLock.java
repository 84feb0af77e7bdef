package redlockd.client;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;

/**
 * Holds a lock of redlockd until close(), for try-with-resources. The work gives fence to the resource, and calls
 * check() before each step. The lock is extended while the work lasts.
 */
public final class JedisLock implements AutoCloseable {
    /** Another client held the lock during the whole wait. */
    public static final class Taken extends RuntimeException {
        Taken(String key) { super("another client still holds the lock on " + key); }
    }

    /** The lock was lost, or its validity is over: the work must stop. */
    public static final class Lost extends RuntimeException {
        Lost(String key, Throwable cause) { super("the lock on " + key + " is lost", cause); }
    }

    private enum Command implements ProtocolCommand {
        DLOCK, DEXTEND, DUNLOCK;

        public byte[] getRaw() {
            return SafeEncoder.encode(name());
        }
    }

    /** Larger than the fence of every earlier holder. */
    public final long fence;
    /** Completes when the lock is lost, also if redlockd sends no reply. */
    public final CompletableFuture<Void> lost = new CompletableFuture<>();
    private final Jedis locks;
    private final String key, token;
    private final Duration ttl;
    private final long end; // of the longest hold
    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile long until;

    /** Waits at most wait for the lock, and keeps it at most for longest. Config has the login, for example. */
    public JedisLock(HostAndPort server, DefaultJedisClientConfig.Builder config, String key,
            Duration ttl, Duration wait, Duration longest) {
        this.key = key;
        this.ttl = ttl;
        // The read timeout is longer than the WAIT. A Jedis is one connection that is never opened anew, as HOLD needs it.
        locks = new Jedis(server, config.socketTimeoutMillis((int) wait.toMillis() + 10_000).build());
        try {
            String hold = "" + longest.toMillis();
            List<?> granted = (List<?>) (wait.toMillis() == 0 // WAIT 0 has no end
                    ? send(Command.DLOCK, key, "" + ttl.toMillis(), "HOLD", hold)
                    : send(Command.DLOCK, key, "" + ttl.toMillis(), "WAIT", "" + wait.toMillis(), "HOLD", hold));
            if (granted == null) throw new Taken(key);
            token = (String) granted.get(0);
            fence = (Long) granted.get(2);
            end = until = System.nanoTime() + longest.toNanos();
            extend(ttl); // confirms the lock after the WAIT
        } catch (RuntimeException e) {
            locks.close(); // redlockd then releases what may be left of the lock
            throw e;
        }
        watch();
        Thread renewal = new Thread(this::renew, "renews " + key);
        renewal.setDaemon(true);
        renewal.start();
    }

    /** Throws Lost if the lock is lost. */
    public void check() {
        if (System.nanoTime() - until >= 0) lost.complete(null);
        if (lost.isDone()) throw new Lost(key, null);
    }

    /**
     * Makes the lock last at least ttl from now, and returns how long it is valid. After a JedisDataException, for
     * example NOQUORUM, the lock is as it was.
     */
    public synchronized Duration extend(Duration ttl) {
        check();
        long sent = System.nanoTime(); // the validity counts from here
        Long validity;
        try {
            validity = (Long) send(Command.DEXTEND, key, token, "" + ttl.toMillis());
        } catch (JedisDataException e) {
            throw e;
        } catch (JedisException e) { // the connection has ended, and with it the lock
            lost.complete(null);
            throw new Lost(key, e);
        }
        check(); // lost stays lost
        if (validity == null) lost.complete(null);
        else until = sent + Math.min(validity * 1_000_000, end - sent);
        check();
        return Duration.ofNanos(until - System.nanoTime());
    }

    private synchronized Object send(Command command, String... words) { // String, Long, List or null
        return SafeEncoder.encodeObject(locks.sendCommand(command, words));
    }

    /** Completes lost when the validity is over. */
    private void watch() {
        long left = until - System.nanoTime();
        if (closed.getCount() == 0 || lost.isDone()) return;
        if (left <= 0) lost.complete(null);
        else CompletableFuture.delayedExecutor(left, TimeUnit.NANOSECONDS).execute(this::watch);
    }

    private void renew() {
        try {
            while (!closed.await(ttl.toMillis() / 3, TimeUnit.MILLISECONDS) && !lost.isDone()) {
                try {
                    extend(ttl);
                } catch (JedisDataException e) {
                    // for example NOQUORUM: the next extension may succeed
                }
            }
        } catch (InterruptedException | Lost e) {
            // lost tells the work
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
}

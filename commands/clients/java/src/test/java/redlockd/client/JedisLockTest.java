package redlockd.client;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;

/** Tests against a daemon: java redlockd.client.JedisLockTest ADDRESS */
public final class JedisLockTest {
    private static HostAndPort server;
    private static Jedis other;

    private static JedisLock lock(String key, Duration wait, Duration longest) {
        return new JedisLock(server, DefaultJedisClientConfig.builder(), key, Duration.ofSeconds(10), wait, longest);
    }

    private static JedisLock lock(String key) {
        return lock(key, Duration.ofMinutes(1), Duration.ofMinutes(10));
    }

    private static Object ask(String command, String... words) {
        return other.sendCommand(() -> command.getBytes(), words);
    }

    private static void want(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    private static void wantLost(Runnable work, String what) {
        try {
            work.run();
        } catch (JedisLock.Lost e) {
            return;
        }
        throw new AssertionError(what);
    }

    private static void await(JedisLock held) {
        held.lost.orTimeout(60, TimeUnit.SECONDS).join();
    }

    public static void main(String[] args) {
        server = HostAndPort.from(args[0]);
        other = new Jedis(server);

        long[] fences = new long[2];
        for (int i = 0; i < 2; i++) {
            try (JedisLock held = lock("java:holds")) {
                fences[i] = held.fence;
                held.check();
                want(ask("DLOCK", "java:holds", "1000") == null, "another client got the lock");
            }
        }
        want(fences[0] > 1_000_000_000_000_000L && fences[1] > fences[0], "fences " + fences[0] + " and " + fences[1]);
        want(ask("DLOCK", "java:holds", "1000") != null, "the lock is not released by close");

        ask("DLOCK", "java:taken", "30000");
        for (Duration wait : new Duration[] {Duration.ofMillis(1), Duration.ZERO}) {
            try (JedisLock held = lock("java:taken", wait, Duration.ofMinutes(1))) {
                throw new AssertionError("it works without the lock");
            } catch (JedisLock.Taken e) {
                // as it should be
            }
        }

        wantLost(() -> {
            try (JedisLock held = lock("java:lost")) {
                ask("DFORCE", "java:lost");
                await(held);
                wantLost(held::check, "check after the loss");
            }
        }, "close after the loss");

        wantLost(() -> {
            try (JedisLock held = lock("java:longest", Duration.ofMinutes(1), Duration.ofMillis(300))) {
                await(held);
            }
        }, "the longest hold does not end");

        wantLost(() -> {
            try (JedisLock held = lock("java:extend")) {
                Duration validity = held.extend(Duration.ofSeconds(25));
                want(validity.toMillis() > 10_000 && validity.toMillis() <= 25_000, "validity " + validity);
                want((Long) ask("PTTL", "java:extend") > 10_000, "the lock is not longer");
                ask("DFORCE", "java:extend");
                wantLost(() -> held.extend(Duration.ofSeconds(1)), "extend after the loss");
            }
        }, "close after the loss");
        System.out.println("passed");
    }
}

// The package redlockd-client for Jedis (commands/clients).
// Run: java -cp 'LIBRARIES/*' JedisLockExample.java 127.0.0.1:7379
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redlockd.client.JedisLock;

public final class JedisLockExample {
    /** A short piece of work, then two that last until the lock is lost. */
    public static void main(String[] args) throws Exception {
        HostAndPort server = HostAndPort.from(args.length > 0 ? args[0] : "127.0.0.1:7379");
        for (long seconds : new long[] {0, 3600, 3600}) {
            try (JedisLock held = new JedisLock(server, DefaultJedisClientConfig.builder(), "invoice:7",
                    Duration.ofSeconds(10), Duration.ofMinutes(10), Duration.ofMinutes(10))) {
                System.out.println("granted fence " + held.fence);
                held.lost.get(seconds, TimeUnit.SECONDS);
            } catch (TimeoutException e) { // the work is done
            } catch (JedisLock.Lost e) {
                System.out.println("lost");
                continue;
            }
            System.out.println("released");
        }
    }
}

// ShedLock over Spring Data Redis and Lettuce.
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

final class ShedLock implements LockStory.Library {
    private final LettuceConnectionFactory connections;
    private final RedisLockProvider provider;
    private final boolean safe;

    ShedLock(String host, int port, boolean safe) {
        this.safe = safe;
        connections = Spring.connect(host, port);
        provider = new RedisLockProvider.Builder(connections).environment("interop").safeUpdate(safe).build();
    }

    @Override
    public LockStory.Held take(String name, Duration lease) {
        Optional<SimpleLock> got = provider.lock(new LockConfiguration(Instant.now(), name, lease, Duration.ZERO));
        return got.map(Held::new).orElse(null);
    }

    /** Without safe updates the library deletes whatever is there. */
    @Override
    public boolean compares() {
        return safe;
    }

    @Override
    public void close() {
        connections.destroy();
    }

    private static final class Held implements LockStory.Held {
        private SimpleLock lock;

        Held(SimpleLock lock) {
            this.lock = lock;
        }

        @Override
        public void extend() {
            lock = lock.extend(Duration.ofSeconds(25), Duration.ZERO).orElseThrow(() -> new IllegalStateException("it is not extended"));
        }

        @Override
        public void release() {
            lock.unlock();
        }
    }
}

// Spring Integration's RedisLockRegistry over Lettuce. Who wants a lock that is
// held has a registry of his own: one registry's threads know of one another.
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.integration.support.locks.DistributedLock;

final class Spring implements LockStory.Library {
    private final LettuceConnectionFactory connections;
    private final boolean pubSub;
    private final List<RedisLockRegistry> registries = new CopyOnWriteArrayList<>();

    Spring(String host, int port, boolean pubSub) {
        connections = connect(host, port);
        this.pubSub = pubSub;
    }

    static LettuceConnectionFactory connect(String host, int port) {
        LettuceConnectionFactory connections = new LettuceConnectionFactory(host, port);
        connections.afterPropertiesSet();
        connections.start();
        return connections;
    }

    private RedisLockRegistry registry() {
        RedisLockRegistry made = new RedisLockRegistry(connections, "registry", LockStory.LONG);
        if (pubSub) {
            made.setRedisLockType(RedisLockType.PUB_SUB_LOCK);
        }
        registries.add(made);
        return made;
    }

    @Override
    public LockStory.Held take(String name, Duration lease) throws Exception {
        return take(name, lease, Duration.ZERO);
    }

    /** Waits as the library does: it polls, or sleeps until it is told. */
    @Override
    public LockStory.Held await(String name, Duration lease) throws Exception {
        Held next = take(name, lease, LockStory.PATIENCE);
        if (next == null) {
            throw new IllegalStateException(name + ": somebody holds it for ever");
        }
        return next;
    }

    /** Who is told of nothing would sleep as long as the lease. */
    @Override
    public void handOver(String name) throws Exception {
        Held held = take(name, LockStory.LONG, Duration.ZERO);
        CompletableFuture<Duration> slept = new CompletableFuture<>();
        Thread waiter = new Thread(() -> {
            try {
                Held next = take(name, LockStory.LONG, LockStory.LONG.multipliedBy(2));
                slept.complete(Duration.ofNanos(System.nanoTime() - next.since()));
                next.release();
            } catch (Throwable error) {
                slept.completeExceptionally(error);
            }
        });
        waiter.start();
        Thread.sleep(1000); // or it has not to wait
        held.release();
        Duration took = slept.get();
        waiter.join();
        if (took.compareTo(LockStory.LONG.dividedBy(2)) > 0) {
            throw new IllegalStateException("who waits learns of a release after " + took);
        }
    }

    private Held take(String name, Duration lease, Duration wait) throws Exception {
        long began = System.nanoTime();
        RedisLockRegistry registry = registry();
        DistributedLock lock = registry.obtain(name);
        return lock.tryLock(wait, lease) ? new Held(registry, lock, name, began) : null;
    }

    @Override
    public void close() throws Exception {
        for (RedisLockRegistry registry : registries) {
            registry.destroy();
        }
        connections.destroy();
    }

    private record Held(RedisLockRegistry registry, DistributedLock lock, String name, long since) implements LockStory.Held {
        @Override
        public void extend() {
            registry.renewLock(name, Duration.ofSeconds(25));
        }

        @Override
        public void release() {
            lock.unlock();
        }
    }
}

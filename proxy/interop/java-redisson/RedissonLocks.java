// Redisson's locks, unmodified. Each take is another thread of one client, by the calls that name the
// thread. Before the steps of all lock libraries, it does what Redisson's own tests of RLock do.
// Argument: default or protocol-3.
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.codec.LongCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

final class RedissonLocks implements LockStory.Library {
    /** The watchdog renews after a third of it. */
    private static final long WATCHDOG = 900;

    private final RedissonClient client;
    private final RedissonClient other;
    private final AtomicLong threads = new AtomicLong(1000);

    private RedissonLocks(String host, int port, boolean resp3) {
        client = connect(host, port, resp3);
        other = connect(host, port, resp3);
        try {
            ownTests(System.getenv("REDLOCKD_KEY") + ":own:");
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] args) {
        LockStory.tell("redisson", "redisson", (host, port) -> new RedissonLocks(host, port, args[0].equals("protocol-3")));
    }

    private static RedissonClient connect(String host, int port, boolean resp3) {
        Config config = new Config();
        config.setLockWatchdogTimeout(WATCHDOG);
        config.setProtocol(resp3 ? Protocol.RESP3 : Protocol.RESP2);
        config.useSingleServer().setAddress("redis://" + host + ":" + port).setConnectionMinimumIdleSize(4);
        return Redisson.create(config);
    }

    @Override
    public LockStory.Held take(String name, Duration lease) throws Exception {
        return take(name, lease, Duration.ZERO);
    }

    /** Waits as the library does, for a message. */
    @Override
    public LockStory.Held await(String name, Duration lease) throws Exception {
        LockStory.Held next = take(name, lease, LockStory.PATIENCE);
        LockStory.check(next != null, name + ": another thread holds it for ever");
        return next;
    }

    private LockStory.Held take(String name, Duration lease, Duration wait) throws Exception {
        RLock lock = client.getLock(name);
        long thread = threads.incrementAndGet();
        boolean taken = lock.tryLockAsync(wait.toMillis(), lease.toMillis(), TimeUnit.MILLISECONDS, thread).get();
        return taken ? new Held(lock, thread) : null;
    }

    /** A waiter of another client gets the lock that is released, and the message is sent. */
    @Override
    public void handOver(String name) throws Exception {
        LockStory.Held held = take(name, LockStory.LONG);
        CountDownLatch messages = new CountDownLatch(1);
        other.getTopic("redisson_lock__channel:{" + name + "}", LongCodec.INSTANCE).addListener(Long.class, (channel, message) -> messages.countDown());
        Future<Boolean> next = other.getLock(name).tryLockAsync(LockStory.PATIENCE.toMillis(), 20_000, TimeUnit.MILLISECONDS, 1);
        held.release();
        LockStory.check(next.get(), name + ": the waiter did not get it");
        LockStory.check(messages.await(LockStory.PATIENCE.toSeconds(), TimeUnit.SECONDS), name + ": no message was sent");
        other.getLock(name).unlockAsync(1).get();
    }

    @Override
    public void close() {
        client.shutdown();
        other.shutdown();
    }

    private record Held(RLock lock, long thread) implements LockStory.Held {
        /** A level more, for longer. */
        @Override
        public void extend() throws Exception {
            LockStory.check(lock.tryLockAsync(0, 25, TimeUnit.SECONDS, thread).get(), "the holder does not get it again");
            lock.unlockAsync(thread).get();
            LockStory.check(lock.isHeldByThread(thread), "one release of two has freed it");
        }

        @Override
        public void release() throws Exception {
            lock.unlockAsync(thread).get();
        }
    }

    private void ownTests(String key) throws Exception {
        levels(client.getLock(key + "levels"), other.getLock(key + "levels"));
        watchdog(client.getLock(key + "watchdog"), other.getLock(key + "watchdog"));
        force(client.getLock(key + "force"), other.getLock(key + "force"));
        fences(client.getFencedLock(key + "fenced"), other.getFencedLock(key + "fenced"));
        several(key);
        crowd(key + "crowd", key + "spin");
        refusals(key);
    }

    /** Nested levels of the calling thread, as other threads and other clients see them. */
    private void levels(RLock mine, RLock others) throws Exception {
        LockStory.check(!mine.isLocked() && mine.getHoldCount() == 0, "a free lock");
        for (int level = 1; level <= 3; level++) {
            mine.lock();
            LockStory.check(mine.getHoldCount() == level, level + " levels, shown are " + mine.getHoldCount());
        }
        LockStory.check(mine.isHeldByCurrentThread() && others.isLocked() && !others.isHeldByCurrentThread(), "who holds it");
        LockStory.check(mine.remainTimeToLive() > 0 && mine.remainTimeToLive() <= WATCHDOG, "it lasts " + mine.remainTimeToLive());
        LockStory.check(!others.tryLock() && !others.tryLock(50, 1000, TimeUnit.MILLISECONDS), "another client gets it");
        LockStory.check(!elsewhere(mine::tryLock), "another thread gets it");
        elsewhere(() -> {
            unheld(mine);
            return null;
        });
        for (int level = 2; level >= 0; level--) {
            LockStory.check(!others.tryLock(), level + 1 + " levels, and another client gets it");
            mine.unlock();
            LockStory.check(mine.getHoldCount() == level && mine.isLocked() == level > 0, level + " levels are left");
        }
        unheld(mine);
        LockStory.check(others.tryLock(), "it is free, and another client does not get it");
        others.unlock();
    }

    /** Redisson's watchdog keeps a lock without a lease for as long as it is held. */
    private void watchdog(RLock mine, RLock others) throws Exception {
        mine.lock();
        mine.lock();
        mine.unlock();
        LockStory.check(!others.tryLock(3 * WATCHDOG, 1000, TimeUnit.MILLISECONDS), "the watchdog let it lapse");
        mine.unlock();
        LockStory.check(others.tryLock(LockStory.PATIENCE.toMillis(), 1000, TimeUnit.MILLISECONDS), "it is not free");
        // Nobody renews a lease that was given.
        LockStory.check(mine.tryLock(LockStory.PATIENCE.toMillis(), 20_000, TimeUnit.MILLISECONDS), "a lease is over, and a waiter does not get it");
        unheld(others);
        mine.unlock();
    }

    private void force(RLock mine, RLock others) {
        LockStory.check(!mine.forceUnlock(), "a free lock is released");
        mine.lock();
        mine.lock();
        LockStory.check(others.forceUnlock() && !mine.isLocked(), "it is held still");
        unheld(mine);
    }

    private void fences(RFencedLock mine, RFencedLock others) {
        long first = mine.lockAndGetToken();
        LockStory.check(mine.getToken() == first, "another token than it was given");
        LockStory.check(others.tryLockAndGetToken(0, TimeUnit.SECONDS) == null, "another client gets it");
        long second = mine.lockAndGetToken();
        mine.unlock();
        mine.unlock();
        long third = others.lockAndGetToken();
        others.unlock();
        LockStory.check(first < second && second < third, "tokens " + first + ", " + second + ", " + third);
    }

    private void several(String key) throws Exception {
        RLock all = client.getMultiLock(client.getLock(key + "a"), client.getLock(key + "b"), client.getLock(key + "c"));
        all.lock();
        LockStory.check(!other.getLock(key + "b").tryLock(), "one of several is free");
        LockStory.check(!other.getMultiLock(other.getLock(key + "c"), other.getLock(key + "d")).tryLock(), "several beside one that is held");
        all.unlock();
        LockStory.check(other.getLock(key + "c").tryLock(), "one of several is held still");
        LockStory.check(client.getMultiLock(client.getLock(key + "e"), client.getLock(key + "f")).tryLock(100, 20_000, TimeUnit.MILLISECONDS), "several with a lease");
        LockStory.check(client.getLock(key + "e").remainTimeToLive() > 10_000, "several do not last as long as their lease");
        other.getLock(key + "c").unlock();
    }

    /** Threads of two clients count in turns, and a lost turn would be seen. */
    private void crowd(String name, String spin) throws Exception {
        int[] counted = new int[2];
        AtomicInteger inside = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            RedissonClient one = i % 2 == 0 ? client : other;
            all.add(pool.submit(() -> {
                for (int turn = 0; turn < 10; turn++) {
                    RLock lock = turn % 2 == 0 ? one.getLock(name) : one.getSpinLock(spin);
                    lock.lock();
                    lock.lock();
                    counted[turn % 2]++;
                    LockStory.check(turn % 2 == 1 || inside.incrementAndGet() == 1, "two threads are inside");
                    if (turn % 2 == 0) {
                        inside.decrementAndGet();
                    }
                    lock.unlock();
                    lock.unlock();
                }
            }));
        }
        for (Future<?> one : all) {
            one.get(LockStory.PATIENCE.toSeconds(), TimeUnit.SECONDS);
        }
        pool.shutdown();
        LockStory.check(counted[0] == 40 && counted[1] == 40, "40 turns of two locks, counted are " + counted[0] + " and " + counted[1]);
    }

    private void refusals(String key) {
        refused("FAIR", () -> client.getFairLock(key + "x").lock());
        refused("SHARED", () -> client.getReadWriteLock(key + "x").readLock().lock());
        refused("SHARED", () -> client.getReadWriteLock(key + "x").writeLock().lock());
        refused("LIMIT", () -> client.getSemaphore(key + "x").tryAcquire());
        refused("LIMIT", () -> client.getPermitExpirableSemaphore(key + "x").tryAcquire());
    }

    private static void refused(String word, Runnable call) {
        try {
            call.run();
        } catch (RedisException error) {
            LockStory.check(error.getMessage().contains("is not served: Redisson's") && error.getMessage().contains(word), error.getMessage());
            return;
        }
        throw new IllegalStateException("it is served, instead of DLOCK " + word);
    }

    private static void unheld(RLock lock) {
        try {
            lock.unlock();
        } catch (IllegalMonitorStateException expected) {
            return;
        }
        throw new IllegalStateException("a thread that does not hold it released it");
    }

    private static <T> T elsewhere(java.util.concurrent.Callable<T> call) throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        try {
            return pool.submit(call).get();
        } catch (ExecutionException error) {
            throw new IllegalStateException(error.getCause());
        } finally {
            pool.shutdown();
        }
    }
}

// Redisson's RLock, which keeps a lock in a hash: what it is told.
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.Config;

final class Refused {
    private Refused() {}

    static void tell(String host, int port, String key) throws InterruptedException {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + host + ":" + port).setRetryAttempts(0);
        RedissonClient client = Redisson.create(config);
        Locks.say("library", Locks.version("redisson"));
        try {
            client.getLock(key).tryLock(0, 20, TimeUnit.SECONDS);
            throw new IllegalStateException("it is served");
        } catch (RedisException error) {
            Locks.say("refused", error.getMessage().split("\\. channel: ")[0]); // the rest is about its connection
        } finally {
            client.shutdown();
        }
    }
}

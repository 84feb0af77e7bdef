// Redisson that has to take a lock which others keep busy, over REDLOCKD_ADDR: one server, or several with a comma
// between, by a RedissonMultiLock of which a majority is enough. It prints how many ms each acquire took, until its
// standard input ends.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.config.Config;

final class RedissonPoll {
    public static void main(String[] args) throws Exception {
        List<RLock> locks = new ArrayList<>();
        for (String address : System.getenv("REDLOCKD_ADDR").split(",")) {
            Config config = new Config();
            config.useSingleServer().setAddress("redis://" + address);
            locks.add(Redisson.create(config).getLock(System.getenv("REDLOCKD_KEY")));
        }
        RLock lock = locks.size() == 1 ? locks.get(0) : new RedissonRedLock(locks.toArray(new RLock[0]));
        Matcher version = Pattern.compile("/redisson-([0-9][0-9.]*[0-9])[^/]*\\.jar").matcher(System.getProperty("java.class.path"));
        System.out.println("library " + (version.find() ? version.group(1) : "unknown"));
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (Exception end) {
                // as the end of it
            }
            Runtime.getRuntime().halt(0);
        });
        watch.setDaemon(true);
        watch.start();
        for (;;) {
            long began = System.nanoTime();
            while (!lock.tryLock(60, 10, TimeUnit.SECONDS)) { }
            System.out.println("took " + (System.nanoTime() - began) / 1_000_000);
            Thread.sleep(20);
            lock.unlock();
            Thread.sleep(20);
        }
    }
}

// Jedis: one UPDATE under a lock. Run: java -cp 'LIBRARIES/*' JedisExample.java 127.0.0.1:7379
import java.util.List;
import redis.clients.jedis.*;
import redis.clients.jedis.util.SafeEncoder;

final class JedisExample {
    static Object send(Jedis locks, String command, String... words) { // String, Long, List or null
        return SafeEncoder.encodeObject(locks.sendCommand(() -> SafeEncoder.encode(command), words));
    }

    static final String UPDATE = "UPDATE invoices SET state = 'sent', fence = ? WHERE id = 7 AND fence <= ?";

    public static void main(String[] args) {
        HostAndPort address = HostAndPort.from(args.length > 0 ? args[0] : "127.0.0.1:7379");
        // The read timeout (70 s) is longer than the WAIT (60 s). A Jedis is one connection, as HOLD needs it.
        JedisClientConfig config = DefaultJedisClientConfig.builder().socketTimeoutMillis(70_000).build();
        try (Jedis locks = new Jedis(address, config)) {
            List<?> granted = (List<?>) send(locks, "DLOCK", "invoice:7", "30000", "WAIT", "60000", "HOLD", "600000");
            if (granted == null) throw new IllegalStateException("another client still holds the lock");
            String token = (String) granted.get(0);
            long fence = (Long) granted.get(2);
            try {
                System.out.printf("granted fence %d, validity %d ms%n", fence, granted.get(1));
                long sent = System.nanoTime();
                Long validity = (Long) send(locks, "DEXTEND", "invoice:7", token, "30000"); // confirms it after WAIT
                if (validity == null) throw new IllegalStateException("the lock was lost");
                System.out.printf("confirmed validity %d ms%n", validity);
                // Longer work sends DEXTEND again before this time is over.
                if (System.nanoTime() - sent >= validity * 1_000_000) throw new IllegalStateException("too late");
                // With JDBC: set both parameters to the fence; executeUpdate() is 0: a later holder has already written.
                System.out.printf("update %s with fence %d%n", UPDATE, fence);
            } finally {
                Object released = send(locks, "DUNLOCK", "invoice:7", token);
                if (!released.equals(1L)) throw new IllegalStateException("the lock was over before its release");
                System.out.println("released 1");
            }
        }
    }
}

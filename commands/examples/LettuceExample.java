// Lettuce: one UPDATE under a lock. Run: java -cp 'LIBRARIES/*' LettuceExample.java 127.0.0.1:7379
import io.lettuce.core.*;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.*;
import io.lettuce.core.protocol.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

final class LettuceExample {
    static <T> T send(StatefulRedisConnection<String, String> locks, String command, CommandOutput<String, String, T> reply,
            String... words) {
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (String word : words) args.add(word);
        return locks.sync().dispatch(() -> command.getBytes(StandardCharsets.US_ASCII), reply, args);
    }

    static final String UPDATE = "UPDATE invoices SET state = 'sent', fence = ? WHERE id = 7 AND fence <= ?";

    public static void main(String[] args) {
        RedisClient client = RedisClient.create("redis://" + (args.length > 0 ? args[0] : "127.0.0.1:7379"));
        client.setOptions(ClientOptions.builder().autoReconnect(false).build());
        // HOLD needs one connection that is never opened anew. Share it with no other caller.
        try (StatefulRedisConnection<String, String> locks = client.connect()) {
            locks.setTimeout(Duration.ofSeconds(70)); // longer than the WAIT (60 s)
            String[] request = {"invoice:7", "30000", "WAIT", "60000", "HOLD", "600000"};
            List<Object> granted = send(locks, "DLOCK", new ArrayOutput<>(StringCodec.UTF8), request); // nil is [null]
            if (granted.get(0) == null) throw new IllegalStateException("another client still holds the lock");
            String token = (String) granted.get(0);
            long fence = (Long) granted.get(2);
            try {
                System.out.printf("granted fence %d, validity %d ms%n", fence, granted.get(1));
                long sent = System.nanoTime(); // confirm the lock after a WAIT:
                Long validity = send(locks, "DEXTEND", new IntegerOutput<>(StringCodec.UTF8), "invoice:7", token, "30000");
                if (validity == null) throw new IllegalStateException("the lock was lost");
                System.out.printf("confirmed validity %d ms%n", validity);
                // Longer work sends DEXTEND again before this time is over.
                if (System.nanoTime() - sent >= validity * 1_000_000) throw new IllegalStateException("too late");
                // With JDBC: set both parameters to the fence; executeUpdate() is 0: a later holder has already written.
                System.out.printf("update %s with fence %d%n", UPDATE, fence);
            } finally {
                Long released = send(locks, "DUNLOCK", new IntegerOutput<>(StringCodec.UTF8), "invoice:7", token);
                if (released != 1) throw new IllegalStateException("the lock was over before its release");
                System.out.println("released " + released);
            }
        } finally {
            client.shutdown();
        }
    }
}

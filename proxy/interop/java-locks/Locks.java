// Lock libraries of the JVM over Lettuce, unmodified.
// Argument: shedlock, shedlock-safe, spring or spring-pubsub.
import java.util.Map;
import java.util.function.BiFunction;

public final class Locks {
    private static final Map<String, BiFunction<String, Integer, LockStory.Library>> LIBRARIES = Map.of(
        "shedlock", (host, port) -> new ShedLock(host, port, false),
        "shedlock-safe", (host, port) -> new ShedLock(host, port, true),
        "spring", (host, port) -> new Spring(host, port, false),
        "spring-pubsub", (host, port) -> new Spring(host, port, true));

    private Locks() {}

    public static void main(String[] args) {
        LockStory.tell(args[0], args[0].startsWith("spring") ? "spring-integration-redis" : "shedlock-core", LIBRARIES.get(args[0]));
    }
}

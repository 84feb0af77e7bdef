// The steps of a lock library of the JVM that takes the daemon for one Redis.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.function.BiFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class LockStory {
    /** One lock that is held. */
    interface Held {
        void extend() throws Exception;

        void release() throws Exception;
    }

    /** Takes locks. */
    interface Library extends AutoCloseable {
        /** Gives null if somebody else holds it. */
        Held take(String name, Duration lease) throws Exception;

        /** Whether a release says so, or at least does nothing, when the lease is over. */
        default boolean compares() {
            return true;
        }

        /** Waits until the lock is free. */
        default Held await(String name, Duration lease) throws Exception {
            for (long end = System.nanoTime() + PATIENCE.toNanos(); System.nanoTime() < end; Thread.sleep(50)) {
                Held held = take(name, lease);
                if (held != null) {
                    return held;
                }
            }
            throw new IllegalStateException(name + ": somebody holds it for ever");
        }

        /** Gives a lock to somebody who waits for it in the library's own way, if it has one. */
        default void handOver(String name) throws Exception {}
    }

    static final Duration LONG = Duration.ofSeconds(20);
    static final Duration PATIENCE = Duration.ofSeconds(30);

    private static final String KEY = System.getenv("REDLOCKD_KEY");
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));
    private final Library library;

    private LockStory(Library library) {
        this.library = library;
    }

    /** Runs the steps and ends the process. jar is the name of the library's own jar, without its version. */
    static void tell(String name, String jar, BiFunction<String, Integer, Library> connect) {
        String[] address = System.getenv("REDLOCKD_ADDR").split(":");
        try {
            say("library", version(jar));
            new LockStory(connect.apply(address[0], Integer.parseInt(address[1]))).story();
        } catch (Throwable error) {
            say("fail", name, error.toString().replace("\n", " "));
            error.printStackTrace();
            Runtime.getRuntime().halt(1); // a library's threads would keep the process
        }
        Runtime.getRuntime().halt(0);
    }

    static void say(String... words) {
        System.out.println(String.join(" ", words));
        System.out.flush();
    }

    static String version(String jar) {
        Matcher version = Pattern.compile("/" + jar + "-([0-9][0-9.]*[0-9])\\.jar").matcher(System.getProperty("java.class.path"));
        return version.find() ? version.group(1) : "unknown";
    }

    static void check(boolean holds, String why) {
        if (!holds) {
            throw new IllegalStateException(why);
        }
    }

    private static void ask(String what) throws IOException {
        say("wait", what);
        check(what.equals(ANSWERS.readLine()), "the driver did not answer " + what);
    }

    private static void gone() throws IOException {
        ask("gone");
        say("ok close");
    }

    private Held taken(String name) throws Exception {
        Held held = library.take(KEY + ":" + name, LONG);
        check(held != null, name + " is not taken");
        return held;
    }

    private void refused(String name) throws Exception {
        check(library.take(KEY + ":" + name, LONG) == null, name + " is taken twice");
    }

    private void story() throws Exception {
        Held held = taken("a");
        say("ok acquire");
        refused("a");
        say("ok contention");
        held.extend();
        refused("a");
        say("ok extend");
        held.release();
        taken("a").release();
        library.handOver(KEY + ":d");
        say("ok release");
        expiry();
        say("ok expiry");
        held = taken("c");
        ask("kill");
        refused("c");
        held.extend();
        held.release();
        taken("c").release();
        say("ok killed");
        library.close();
        gone();
    }

    /** The second one waits for the end of the first one's lease, and keeps what it has got. */
    private void expiry() throws Exception {
        Held late = library.take(KEY + ":b", Duration.ofMillis(1500));
        check(late != null, "b is not taken");
        Held next = library.await(KEY + ":b", LONG);
        if (library.compares()) {
            try {
                late.release();
            } catch (Exception expected) { // some say it, all leave the next one's lock alone
            }
            refused("b");
        }
        next.release();
    }
}

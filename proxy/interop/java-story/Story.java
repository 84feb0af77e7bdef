// The story of proxy/interop, told through any Java client of Redis: what is
// asked, what must be answered, and the lines that the driver reads.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class Story {
    /** One client of the library. Values are String, Long, List and null. */
    interface Client {
        Object call(String... args) throws Exception;

        /** Sends all commands before it waits for the first reply. */
        List<Object> pipeline(List<String[]> commands) throws Exception;

        void close() throws Exception;
    }

    /** Makes clients with the library's defaults; a null password is none. */
    interface Library {
        Client connect(String host, int port, String password) throws Exception;

        /** Says whether it is an error reply, and not a fault of the connection. */
        boolean isServer(Throwable error);
    }

    private interface Step {
        void play() throws Exception;
    }

    private static final class Skipped extends Exception {
        Skipped(String why) {
            super(why);
        }
    }

    private final Library library;
    private final String key = System.getenv("REDLOCKD_KEY");
    private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));
    private Client client;
    private String token;
    private long fence;

    private Story(Library library) {
        this.library = library;
    }

    /** Plays all steps and ends the process with 1 at the first that fails; jar begins the name of the library's. */
    static void tell(String jar, Library library) {
        Matcher version = Pattern.compile("/" + jar + "-([0-9][0-9.]*[0-9])[^/]*\\.jar").matcher(System.getProperty("java.class.path"));
        say("library", version.find() ? version.group(1) : "unknown");
        Story s = new Story(library);
        if (System.getenv("REDLOCKD_ROLLING") != null) {
            s.roll();
            Runtime.getRuntime().halt(0);
        }
        s.step("connect", s::connect);
        s.step("ping", s::ping);
        s.step("password", s::password);
        s.step("dlock", s::dlock);
        s.step("taken", s::taken);
        s.step("dunlock", s::dunlock);
        s.step("dextend", s::dextend);
        s.step("dnextid", s::dnextid);
        s.step("error", s::error);
        s.step("pipeline", s::pipeline);
        s.step("dmlock", s::dmlock);
        s.step("wait", s::turn);
        s.step("reconnect", s::reconnect);
        s.step("close", s::close);
    }

    private final int[] rolled = new int[4]; // pairs, waits, refused, failed
    private final List<String> why = new ArrayList<>();

    /** Locks with four threads and one client, until the driver says so. */
    private void roll() {
        try {
            connect();
            say("ready");
            List<Thread> working = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                int worker = i;
                working.add(new Thread(() -> {
                    for (int n = 0; !Thread.currentThread().isInterrupted(); n++) {
                        Throwable error = null;
                        try {
                            Thread.sleep(20);
                        } catch (InterruptedException end) {
                            return;
                        }
                        try {
                            pair(worker, worker == 0 && n % 3 == 0);
                        } catch (Throwable failure) {
                            error = failure;
                        }
                        note(over ? null : error);
                    }
                }));
            }
            working.forEach(Thread::start);
            answers.readLine();
            over = true;
            for (Thread one : working) {
                one.interrupt();
                one.join(5000);
            }
        } catch (Throwable error) {
            note(error);
        }
        for (String text : why) {
            say("failure", text.replace("\n", " "));
        }
        say("rolled", rolled[0] + " " + rolled[1] + " " + rolled[2] + " " + rolled[3]);
    }

    private volatile boolean over;

    private synchronized void note(Throwable error) {
        rolled[0]++;
        if (error != null) {
            rolled[3]++;
            if (why.size() < 3) {
                why.add(error.toString());
            }
        }
    }

    /** Takes a lock and releases it. A wait that is refused is repeated until it is granted. */
    private void pair(int i, boolean waits) throws Exception {
        String token = "rolling-" + key + "-" + i;
        String name = waits ? key + ":w" : key + ":" + i; // the driver takes the first, too
        String[] lock = waits ? new String[] {"DLOCK", name, "10000", "TOKEN", token, "WAIT", "2000"} : new String[] {"DLOCK", name, "10000", "TOKEN", token};
        if (waits) {
            synchronized (this) {
                rolled[1]++;
            }
        }
        long end = System.currentTimeMillis() + 30000;
        for (int tries = 0;; tries++) {
            try {
                check(client.call(lock) != null, "DLOCK: nil");
                break;
            } catch (Exception error) {
                if (!waits || !String.valueOf(error).contains("SHUTDOWN") || System.currentTimeMillis() > end) {
                    throw error;
                }
                if (tries == 0) {
                    synchronized (this) {
                        rolled[2]++;
                    }
                }
                Thread.sleep(50);
            }
        }
        client.call("DUNLOCK", name, token);
    }

    private static void say(String... words) {
        System.out.println(String.join(" ", words));
        System.out.flush();
    }

    private void step(String name, Step step) {
        try {
            step.play();
            say("ok", name);
        } catch (Skipped skipped) {
            say("skip", name, skipped.getMessage());
        } catch (Throwable error) {
            say("fail", name, error.toString().replace("\n", " "));
            error.printStackTrace();
            Runtime.getRuntime().halt(1); // a library's threads would keep the process
        }
    }

    private void connect() throws Exception {
        String[] address = System.getenv("REDLOCKD_ADDR").split(":");
        client = library.connect(address[0], Integer.parseInt(address[1]), null);
        expect("hello", "ECHO", "hello");
    }

    private void ping() throws Exception {
        expect("PONG", "PING");
        String info = String.valueOf(client.call("CLIENT", "INFO"));
        Matcher resp = Pattern.compile("resp=([23])").matcher(info);
        check(resp.find(), "CLIENT INFO " + info);
        say("protocol", resp.group(1));
    }

    private void password() throws Exception {
        if (System.getenv("REDLOCKD_PASSWORD") == null) {
            throw new Skipped("the daemon has none");
        }
        String[] address = System.getenv("REDLOCKD_PASSWORD_ADDR").split(":");
        int port = Integer.parseInt(address[1]);
        Client right = library.connect(address[0], port, System.getenv("REDLOCKD_PASSWORD"));
        check("PONG".equals(right.call("PING")), "PING with the right password");
        right.close();
        Throwable refused = failure(() -> {
            Client wrong = library.connect(address[0], port, "wrong");
            try {
                wrong.call("PING");
            } finally {
                wrong.close();
            }
        });
        String chain = "";
        for (Throwable t = refused; t != null; t = t.getCause()) {
            chain += t + " ";
        }
        check(chain.contains("WRONGPASS") || chain.contains("NOAUTH"), "a wrong password gives " + chain);
    }

    private void dlock() throws Exception {
        grant(30000);
    }

    private void taken() throws Exception {
        expect(null, "DLOCK", key, "30000");
    }

    private void dunlock() throws Exception {
        expect(0L, "DUNLOCK", key, "not-the-token");
        expect(1L, "DUNLOCK", key, token);
    }

    private void dextend() throws Exception {
        long before = fence;
        grant(20000);
        check(fence > before, "the fence does not rise: " + before + ", " + fence);
        Object validity = client.call("DEXTEND", key, token, "40000");
        check(validity instanceof Long && (Long) validity > 30000 && (Long) validity <= 40000, "validity " + validity);
        expect(null, "DEXTEND", key, "not-the-token", "40000");
        expect(1L, "DUNLOCK", key, token);
    }

    private void dnextid() throws Exception {
        long first = (Long) client.call("DNEXTID", key);
        long second = (Long) client.call("DNEXTID", key);
        check(first > 0 && second > first, first + ", then " + second);
    }

    private void error() throws Exception {
        Throwable error = failure(() -> client.call("DLOCK", key, "5"));
        check(library.isServer(error) && error.getMessage().contains("ERR ttl '5'"), "error " + error);
        expect("PONG", "PING");
    }

    private void pipeline() throws Exception {
        List<Object> grants = client.pipeline(hundred("DLOCK", "30000", "TOKEN", "interop-token"));
        check(grants.size() == 100, "grants " + grants);
        for (Object grant : grants) {
            check(grant instanceof List && "interop-token".equals(((List<?>) grant).get(0)), "grant " + grant);
        }
        List<Object> released = client.pipeline(hundred("DUNLOCK", "interop-token"));
        check(released.equals(Collections.nCopies(100, 1L)), "releases " + released);
    }

    private List<String[]> hundred(String word, String... rest) {
        List<String[]> commands = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            List<String> args = new ArrayList<>(Arrays.asList(word, key + ":" + i));
            args.addAll(Arrays.asList(rest));
            commands.add(args.toArray(new String[0]));
        }
        return commands;
    }

    private void dmlock() throws Exception {
        grant(30000, "DMLOCK", "30000", "2", key + ":a", key + ":b");
        expect(2L, "DMUNLOCK", token, "2", key + ":a", key + ":b");
    }

    private void turn() throws Exception {
        grant(100);
        grant(30000, "DLOCK", key, "30000", "WAIT", "20000");
        expect(1L, "DUNLOCK", key, token);
    }

    /** Accepts errors of the connection until the daemon is back, or the others of a cluster are found. */
    private void reconnect() throws Exception {
        await(System.getenv().getOrDefault("REDLOCKD_OUTAGE", "restart"));
        for (int i = 0; i < 200; i++) {
            try {
                pipeline();
                break;
            } catch (Exception gone) {
                Thread.sleep(50);
            }
        }
        grant(30000);
        expect(1L, "DUNLOCK", key, token);
    }

    private void close() throws Exception {
        client.close();
        await("gone");
    }

    private void await(String what) throws Exception {
        say("wait", what);
        check(what.equals(answers.readLine()), "the driver did not answer " + what);
    }

    /** Takes the lock of the story. */
    private void grant(long ttl) throws Exception {
        grant(ttl, "DLOCK", key, Long.toString(ttl));
    }

    private void grant(long ttl, String... args) throws Exception {
        Object reply = client.call(args);
        check(reply instanceof List && ((List<?>) reply).size() == 3, "a grant has three elements: " + reply);
        List<?> parts = (List<?>) reply;
        token = (String) parts.get(0);
        long validity = (Long) parts.get(1);
        fence = (Long) parts.get(2);
        check(token.length() == 27 && validity > 0 && validity <= ttl && fence > 1L << 50, "grant " + reply);
    }

    private void expect(Object wanted, String... args) throws Exception {
        Object got = client.call(args);
        check(Objects.equals(got, wanted), String.join(" ", args) + ": got " + got + ", wanted " + wanted);
    }

    private static Throwable failure(Step step) {
        try {
            step.play();
        } catch (Throwable error) {
            return error;
        }
        throw new AssertionError("there is no error");
    }

    private static void check(boolean holds, String why) {
        if (!holds) {
            throw new AssertionError(why);
        }
    }
}

// Lettuce. Argument: default, protocol-2 or cluster.
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.BaseRedisAsyncCommands;
import io.lettuce.core.api.sync.BaseRedisCommands;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;

final class LettuceStory {
    public static void main(String[] args) {
        Story.tell("lettuce-core", new Story.Library() {
            @Override
            public Story.Client connect(String host, int port, String password) {
                RedisURI.Builder address = RedisURI.builder().withHost(host).withPort(port);
                if (password != null) {
                    address.withPassword(password.toCharArray());
                }
                if (args[0].equals("cluster")) {
                    RedisClusterClient cluster = RedisClusterClient.create(address.build());
                    StatefulRedisClusterConnection<String, String> nodes = cluster.connect();
                    return new Client(cluster, nodes, nodes.sync(), nodes.async());
                }
                RedisClient client = RedisClient.create(address.build());
                if (args[0].equals("protocol-2")) {
                    client.setOptions(ClientOptions.builder().protocolVersion(ProtocolVersion.RESP2).build());
                }
                try {
                    StatefulRedisConnection<String, String> connection = client.connect();
                    return new Client(client, connection, connection.sync(), connection.async());
                } catch (RuntimeException refused) {
                    client.shutdown();
                    throw refused;
                }
            }

            @Override
            public boolean isServer(Throwable error) {
                return error instanceof RedisCommandExecutionException;
            }
        });
    }

    private static final class Word implements ProtocolKeyword {
        private final String word;

        Word(String word) {
            this.word = word;
        }

        @Override
        public byte[] getBytes() {
            return word.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public String toString() {
            return word;
        }
    }

    private static final class Client implements Story.Client {
        private final AbstractRedisClient client;
        private final StatefulConnection<String, String> connection;
        private final BaseRedisCommands<String, String> sync;
        private final BaseRedisAsyncCommands<String, String> async;

        Client(AbstractRedisClient client, StatefulConnection<String, String> connection, BaseRedisCommands<String, String> sync,
                BaseRedisAsyncCommands<String, String> async) {
            this.client = client;
            this.connection = connection;
            this.sync = sync;
            this.async = async;
        }

        private static CommandArgs<String, String> rest(String[] args) {
            CommandArgs<String, String> rest = new CommandArgs<>(StringCodec.UTF8);
            for (int i = 1; i < args.length; i++) {
                if (i == 1 && args[0].matches("D[^M].*")) {
                    rest.addKey(args[i]); // of a cluster's nodes, the one of this key gets the command
                } else {
                    rest.add(args[i]);
                }
            }
            return rest;
        }

        /** Lettuce wants to know beforehand what a command answers. */
        @SuppressWarnings({"unchecked", "rawtypes"})
        private static CommandOutput<String, String, Object> reply(String word) {
            switch (word) {
                case "DLOCK":
                case "DMLOCK":
                    return (CommandOutput) new NestedMultiOutput<>(StringCodec.UTF8);
                case "DUNLOCK":
                case "DMUNLOCK":
                case "DEXTEND":
                case "DNEXTID":
                    return (CommandOutput) new IntegerOutput<>(StringCodec.UTF8);
                default:
                    return (CommandOutput) new StatusOutput<>(StringCodec.UTF8);
            }
        }

        @Override
        public Object call(String... args) {
            Object got = sync.dispatch(new Word(args[0]), reply(args[0]), rest(args));
            // NestedMultiOutput makes a list with one null of a nil.
            return Collections.singletonList(null).equals(got) ? null : got;
        }

        @Override
        public List<Object> pipeline(List<String[]> commands) throws Exception {
            connection.setAutoFlushCommands(false);
            List<RedisFuture<Object>> promised = new ArrayList<>();
            for (String[] args : commands) {
                promised.add(async.dispatch(new Word(args[0]), reply(args[0]), rest(args)));
            }
            connection.flushCommands();
            connection.setAutoFlushCommands(true);
            LettuceFutures.awaitAll(Duration.ofSeconds(20), promised.toArray(new RedisFuture[0]));
            List<Object> replies = new ArrayList<>();
            for (RedisFuture<Object> p : promised) {
                replies.add(p.get());
            }
            return replies;
        }

        @Override
        public void close() {
            connection.close();
            client.shutdown(0, 5, TimeUnit.SECONDS);
        }
    }
}

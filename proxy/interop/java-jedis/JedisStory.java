// Jedis. Argument: default and protocol-2 for RedisClient, which pools
// connections; test-on-borrow, which asks each before it uses it; legacy-class for Jedis, which is one connection; cluster for RedisClusterClient.
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.SafeEncoder;

final class JedisStory {
    public static void main(String[] args) {
        boolean legacy = args[0].equals("legacy-class");
        Story.tell("jedis", new Story.Library() {
            @Override
            public Story.Client connect(String host, int port, String password) {
                DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder().password(password);
                if (args[0].equals("protocol-2")) {
                    config.protocol(RedisProtocol.RESP2);
                }
                HostAndPort address = new HostAndPort(host, port);
                if (args[0].equals("cluster")) {
                    return new Cluster(address);
                }
                return legacy ? new Single(address, config.build()) : new Pooled(address, config.build(), args[0].equals("test-on-borrow"));
            }

            @Override
            public boolean isServer(Throwable error) {
                return error instanceof JedisDataException;
            }
        });
    }

    private static ProtocolCommand word(String word) {
        return () -> SafeEncoder.encode(word);
    }

    private static String[] rest(String[] args) {
        return Arrays.copyOfRange(args, 1, args.length);
    }

    private static List<Object> send(AbstractPipeline pipeline, List<String[]> commands) {
        List<Response<Object>> replies = new ArrayList<>();
        for (String[] args : commands) {
            replies.add(pipeline.sendCommand(word(args[0]), rest(args)));
        }
        pipeline.sync();
        return replies.stream().map(r -> SafeEncoder.encodeObject(r.get())).collect(Collectors.toList());
    }

    private static final class Pooled implements Story.Client {
        private final RedisClient client;

        Pooled(HostAndPort address, DefaultJedisClientConfig config, boolean tests) {
            ConnectionPoolConfig pool = new ConnectionPoolConfig();
            pool.setTestOnBorrow(tests);
            client = RedisClient.builder().hostAndPort(address).clientConfig(config).poolConfig(pool).build();
        }

        @Override
        public Object call(String... args) {
            return SafeEncoder.encodeObject(client.sendCommand(word(args[0]), rest(args)));
        }

        @Override
        public List<Object> pipeline(List<String[]> commands) {
            try (AbstractPipeline pipeline = client.pipelined()) {
                return send(pipeline, commands);
            }
        }

        @Override
        public void close() {
            client.close();
        }
    }

    /** A cluster is told which key decides where a command goes. */
    private static final class Cluster implements Story.Client {
        private final RedisClusterClient client;

        Cluster(HostAndPort address) {
            client = RedisClusterClient.builder().nodes(Collections.singleton(address)).build();
        }

        @Override
        public Object call(String... args) {
            String key = args.length > 1 && args[0].matches("D[^M].*") ? args[1] : "any";
            return SafeEncoder.encodeObject(client.sendCommand(key, word(args[0]), rest(args)));
        }

        @Override
        public List<Object> pipeline(List<String[]> commands) {
            try (AbstractPipeline pipeline = client.pipelined()) {
                List<Response<Object>> replies = new ArrayList<>();
                for (String[] args : commands) {
                    CommandArguments command = new CommandArguments(word(args[0])).key(args[1]).addObjects((Object[]) Arrays.copyOfRange(args, 2, args.length));
                    replies.add(pipeline.executeCommand(new CommandObject<>(command, BuilderFactory.RAW_OBJECT)));
                }
                pipeline.sync();
                return replies.stream().map(r -> SafeEncoder.encodeObject(r.get())).collect(Collectors.toList());
            }
        }

        @Override
        public void close() {
            client.close();
        }
    }

    /** One connection, which is opened anew when it has broken, as its users do. */
    private static final class Single implements Story.Client {
        private final HostAndPort address;
        private final DefaultJedisClientConfig config;
        private Jedis client;

        Single(HostAndPort address, DefaultJedisClientConfig config) {
            this.address = address;
            this.config = config;
            client = new Jedis(address, config);
        }

        @Override
        public Object call(String... args) {
            if (client.isBroken()) {
                client.close();
                client = new Jedis(address, config);
            }
            return SafeEncoder.encodeObject(client.sendCommand(word(args[0]), rest(args)));
        }

        @Override
        public List<Object> pipeline(List<String[]> commands) {
            return send(client.pipelined(), commands);
        }

        @Override
        public void close() {
            client.close();
        }
    }
}

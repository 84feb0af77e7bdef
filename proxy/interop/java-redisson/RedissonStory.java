// Redisson: its plain commands, sent by the executor that its objects use,
// since it has no public call for a command that it does not know. Argument:
// default or protocol-3.
import java.util.Arrays;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.client.protocol.RedisCommand;
import org.redisson.client.protocol.decoder.MultiDecoder;
import org.redisson.client.protocol.decoder.ObjectListReplayDecoder;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.command.CommandBatchService;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

final class RedissonStory {
    public static void main(String[] args) {
        Story.tell("redisson", new Story.Library() {
            @Override
            public Story.Client connect(String host, int port, String password) {
                Config config = new Config();
                config.useSingleServer().setAddress("redis://" + host + ":" + port);
                if (password != null) {
                    config.setPassword(password);
                }
                if (args[0].equals("protocol-3")) {
                    config.setProtocol(Protocol.RESP3);
                }
                return new Client((Redisson) Redisson.create(config));
            }

            @Override
            public boolean isServer(Throwable error) {
                return error instanceof RedisException;
            }
        });
    }

    private static final class Client implements Story.Client {
        private final Redisson redisson;

        Client(Redisson redisson) {
            this.redisson = redisson;
        }

        /** Scalars come as they are, arrays as lists. */
        @SuppressWarnings({"unchecked", "rawtypes"})
        private static RedisCommand<Object> word(String word) {
            return new RedisCommand<Object>(word, (MultiDecoder) new ObjectListReplayDecoder<Object>());
        }

        private static Object[] rest(String[] args) {
            return Arrays.copyOfRange(args, 1, args.length, Object[].class);
        }

        private static String key(String[] args) {
            return args.length > 1 ? args[1] : "";
        }

        @Override
        public Object call(String... args) {
            CommandAsyncExecutor executor = redisson.getCommandExecutor();
            return executor.get(executor.<Object, Object>writeAsync(key(args), StringCodec.INSTANCE, word(args[0]), rest(args)));
        }

        @Override
        @SuppressWarnings("unchecked")
        public List<Object> pipeline(List<String[]> commands) {
            CommandBatchService batch = new CommandBatchService(redisson.getCommandExecutor(), BatchOptions.defaults());
            for (String[] args : commands) {
                batch.<Object, Object>writeAsync(key(args), StringCodec.INSTANCE, word(args[0]), rest(args));
            }
            return (List<Object>) batch.execute().getResponses();
        }

        @Override
        public void close() {
            redisson.shutdown();
        }
    }
}

<?php
// The story, told through a PHP client that the program describes by an object
// with these methods:
//   version(): string
//   connect(string $host, int $port, ?string $password): mixed   the client
//   ask($client, string ...$args): mixed          null is nil; throws Refused for an error reply
//   pipeline($client, array $commands): array
//   renew($client)                                after an error of the connection
//   close($client): void

class Refused extends Exception {}

function say(string ...$words): void
{
    fwrite(STDOUT, implode(' ', $words) . "\n");
}

function check(bool $holds, string $why): void
{
    if (!$holds) {
        throw new LogicException($why);
    }
}

final class Story
{
    private mixed $client = null;
    private string $key;
    private array $grant = [];

    public function __construct(private object $library)
    {
        $this->key = getenv('REDLOCKD_KEY');
    }

    /** Plays all steps and ends the process with 1 at the first that fails. */
    public function tell(): void
    {
        say('library', $this->library->version());
        foreach (['connect', 'ping', 'password', 'dlock', 'taken', 'dunlock', 'dextend', 'dnextid', 'error', 'pipeline', 'reconnect', 'close'] as $step) {
            try {
                if ($this->$step() !== false) {
                    say('ok', $step);
                }
            } catch (Throwable $e) {
                say('fail', $step, str_replace("\n", ' ', get_class($e) . ' ' . $e->getMessage()));
                exit(1);
            }
        }
    }

    private function ask(string ...$args): mixed
    {
        return $this->library->ask($this->client, ...$args);
    }

    private function expect(mixed $wanted, string ...$args): void
    {
        $got = $this->ask(...$args);
        check($got === $wanted, implode(' ', $args) . ': got ' . var_export($got, true) . ', wanted ' . var_export($wanted, true));
    }

    /** Takes the lock of the story: [token, validity, fence]. */
    private function grant(int $ttl): void
    {
        $reply = $this->ask('DLOCK', $this->key, (string) $ttl);
        check(is_array($reply) && count($reply) === 3, 'a grant has three elements: ' . var_export($reply, true));
        [$token, $validity, $fence] = $reply;
        check(is_string($token) && strlen($token) === 27, "token $token");
        check(is_int($validity) && $validity > 0 && $validity <= $ttl, "validity $validity");
        check(is_int($fence) && $fence > 2 ** 50, "fence $fence");
        $this->grant = $reply;
    }

    private function connect(): void
    {
        [$host, $port] = explode(':', getenv('REDLOCKD_ADDR'));
        $this->client = $this->library->connect($host, (int) $port, null);
        $this->expect('hello', 'ECHO', 'hello');
    }

    private function ping(): void
    {
        $this->expect('PONG', 'PING');
        $info = $this->ask('CLIENT', 'INFO');
        check(preg_match('/resp=([23])/', $info, $resp) === 1, "CLIENT INFO $info");
        say('protocol', $resp[1]);
    }

    private function password()
    {
        if (getenv('REDLOCKD_PASSWORD') === false) {
            say('skip password the daemon has none');
            return false;
        }
        [$host, $port] = explode(':', getenv('REDLOCKD_PASSWORD_ADDR'));
        $right = $this->library->connect($host, (int) $port, getenv('REDLOCKD_PASSWORD'));
        check($this->library->ask($right, 'PING') === 'PONG', 'PING with the right password');
        $this->library->close($right);
        try {
            $wrong = $this->library->connect($host, (int) $port, 'wrong');
            $this->library->ask($wrong, 'PING');
        } catch (Exception $e) {
            check(preg_match('/WRONGPASS|NOAUTH/', $e->getMessage()) === 1, 'a wrong password gives ' . $e->getMessage());
            return true;
        }
        throw new LogicException('a wrong password is not refused');
    }

    private function dlock(): void
    {
        $this->grant(30000);
    }

    private function taken(): void
    {
        $this->expect(null, 'DLOCK', $this->key, '30000');
    }

    private function dunlock(): void
    {
        $this->expect(0, 'DUNLOCK', $this->key, 'not-the-token');
        $this->expect(1, 'DUNLOCK', $this->key, $this->grant[0]);
    }

    private function dextend(): void
    {
        $before = $this->grant[2];
        $this->grant(20000);
        check($this->grant[2] > $before, "the fence does not rise: $before, {$this->grant[2]}");
        $validity = $this->ask('DEXTEND', $this->key, $this->grant[0], '40000');
        check(is_int($validity) && $validity > 30000 && $validity <= 40000, 'validity ' . var_export($validity, true));
        $this->expect(null, 'DEXTEND', $this->key, 'not-the-token', '40000');
        $this->expect(1, 'DUNLOCK', $this->key, $this->grant[0]);
    }

    private function dnextid(): void
    {
        $first = $this->ask('DNEXTID', $this->key);
        $second = $this->ask('DNEXTID', $this->key);
        check(is_int($first) && is_int($second) && 0 < $first && $first < $second, var_export([$first, $second], true));
    }

    private function error(): void
    {
        try {
            $got = $this->ask('DLOCK', $this->key, '5');
        } catch (Refused $e) {
            check(str_starts_with($e->getMessage(), 'ERR ttl'), 'error ' . $e->getMessage());
            $this->expect('PONG', 'PING');
            return;
        }
        throw new LogicException('a ttl of 5 ms gives ' . var_export($got, true));
    }

    private function pipeline(): void
    {
        $grants = $this->hundred('DLOCK', '30000', 'TOKEN', 'interop-token');
        check(array_column($grants, 0) === array_fill(0, 100, 'interop-token'), 'grants ' . json_encode($grants));
        $released = $this->hundred('DUNLOCK', 'interop-token');
        check($released === array_fill(0, 100, 1), 'releases ' . json_encode($released));
    }

    private function hundred(string $word, string ...$rest): array
    {
        return $this->library->pipeline($this->client, array_map(fn ($i) => [$word, "{$this->key}:$i", ...$rest], range(0, 99)));
    }

    /** Accepts errors of the connection until the daemon is back. */
    private function reconnect(): void
    {
        $this->wait('restart');
        for ($i = 0; $i < 200; $i++) {
            try {
                $this->ask('PING');
                break;
            } catch (Exception) {
                usleep(50000);
                $this->library->renew($this->client);
            }
        }
        $this->grant(30000);
        $this->expect(1, 'DUNLOCK', $this->key, $this->grant[0]);
    }

    private function close(): void
    {
        $this->library->close($this->client);
        $this->wait('gone');
    }

    private function wait(string $what): void
    {
        say('wait', $what);
        check(trim((string) fgets(STDIN)) === $what, "the driver did not answer $what");
    }
}

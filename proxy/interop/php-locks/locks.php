<?php
// Lock libraries of PHP, unmodified, that take the daemon for one Redis.
// Argument: laravel-phpredis, laravel-predis, php-lock-phpredis, php-lock-predis or symfony.
declare(strict_types=1);

use Illuminate\Cache\RedisStore;
use Illuminate\Redis\RedisManager;
use Malkusch\Lock\Exception\LockAcquireTimeoutException;
use malkusch\lock\exception\TimeoutException;
use Malkusch\Lock\Mutex\AbstractSpinlockWithTokenMutex;
use malkusch\lock\mutex\Mutex;
use malkusch\lock\mutex\PHPRedisMutex;
use malkusch\lock\mutex\PredisMutex;
use Malkusch\Lock\Mutex\RedisMutex;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Store\RedisStore as SymfonyStore;

require 'Predis/autoload.php';
[$host, $port] = explode(':', getenv('REDLOCKD_ADDR'));
[$package, $driver] = array_pad(explode('@', strtr($argv[1], ['-phpredis' => '@phpredis', '-predis' => '@predis'])), 2, 'phpredis');

/** Debian's packages, which alone know the versions. */
const PACKAGES = ['laravel' => 'php-illuminate-cache', 'php-lock' => 'php-malkusch-lock', 'symfony' => 'php-symfony-lock'];

/** Locks of Laravel's cache. */
final class Laravel
{
    private RedisManager $manager;

    public function __construct(string $driver, string $host, int $port)
    {
        require 'Illuminate/Cache/autoload.php';
        require 'Illuminate/Redis/autoload.php';
        $this->manager = new RedisManager(null, $driver, ['default' => ['host' => $host, 'port' => $port]]);
    }

    public function take(string $name, int $seconds, int $wait): ?callable
    {
        $lock = (new RedisStore($this->manager))->lock($name, $seconds);
        try {
            $taken = $wait > 0 ? $lock->block($wait) : $lock->get();
        } catch (Illuminate\Contracts\Cache\LockTimeoutException) {
            $taken = false;
        }
        return $taken ? fn () => check($lock->release(), 'nobody held it') : null;
    }

    public function close(): void
    {
        foreach ($this->manager->connections() as $connection) {
            $connection->disconnect();
        }
    }
}

/**
 * php-lock: REDLOCKD_PHP_LOCK names the autoload.php of another version than
 * Debian's. The library holds a lock while a function of its user runs, here in a
 * fiber that rests.
 */
final class PhpLock
{
    private Redis|Predis\Client $client;

    public function __construct(string $driver, string $host, int $port)
    {
        require getenv('REDLOCKD_PHP_LOCK') ?: 'Malkusch/Lock/autoload.php';
        if ($driver === 'predis') {
            $this->client = new Predis\Client(['host' => $host, 'port' => $port]);
        } else {
            $this->client = new Redis();
            $this->client->connect($host, $port);
        }
    }

    public function take(string $name, int $seconds, int $wait): ?callable
    {
        $mutex = $this->mutex($name, $seconds, $wait);
        $holder = new Fiber(fn () => $mutex->synchronized(fn () => Fiber::suspend()));
        try {
            $holder->start();
        } catch (TimeoutException|LockAcquireTimeoutException) {
            return null;
        }
        return fn () => $holder->resume();
    }

    /** Of version 3, or of version 2, whose one number is how long it waits and how long it may be held: a second less than the lease. */
    private function mutex(string $name, int $seconds, int $wait): Mutex
    {
        if (class_exists(AbstractSpinlockWithTokenMutex::class)) {
            return new RedisMutex($this->client, $name, max(1, $wait), $seconds);
        }
        $class = $this->client instanceof Redis ? PHPRedisMutex::class : PredisMutex::class;
        return new $class([$this->client], $name, $wait ?: $seconds - 1);
    }

    public function close(): void
    {
        $this->client instanceof Redis ? $this->client->close() : $this->client->disconnect();
    }
}

/** Symfony keeps its locks in sorted sets: what it is told. */
function symfony(string $host, int $port): void
{
    require 'Symfony/Component/Lock/autoload.php';
    $client = new Redis();
    $client->connect($host, $port);
    try {
        (new SymfonyStore($client))->save(new Key(getenv('REDLOCKD_KEY')));
        throw new RuntimeException('it is served');
    } catch (LockConflictedException) {
        throw new RuntimeException('somebody else is said to hold it');
    } catch (Symfony\Component\Lock\Exception\LockStorageException $e) {
        say('refused', $e->getMessage());
    }
    $client->close();
}

function say(string ...$words): void
{
    echo strtr(implode(' ', $words), "\n", ' '), "\n";
    flush();
}

function ask(string $what): void
{
    say('wait', $what);
    check(trim((string) fgets(STDIN)) === $what, "the driver did not answer $what");
}

function check(bool $holds, string $why): void
{
    $holds || throw new RuntimeException($why);
}

function fails(callable $act): bool
{
    try {
        $act();
    } catch (Throwable) {
        return true;
    }
    return false;
}

/** A lock is what gives it back. Who is refused waits a second, as php-lock always does. */
function story(Laravel|PhpLock $library): void
{
    $key = getenv('REDLOCKD_KEY');
    $take = fn (string $name, int $seconds = 20, int $wait = 0) => $library->take("$key:$name", $seconds, $wait)
        ?? throw new RuntimeException("$name is not taken");
    $refused = fn (string $name) => check($library->take("$key:$name", 20, 1) === null, "$name is taken twice");
    $release = $take('a');
    say('ok acquire');
    $refused('a');
    say('ok contention');
    $release();
    $take('a')();
    say('ok release');
    $late = $take('b', 2);
    $next = $take('b', 20, 20);
    check(fails($late), 'what has expired can be released');
    $refused('b');
    $next();
    say('ok expiry');
    $release = $take('c');
    ask('kill');
    $refused('c');
    $release();
    $take('c')();
    say('ok killed');
    $library->close();
}

try {
    say('library', strtok((string) shell_exec('dpkg-query -W -f \'${Version}\' ' . PACKAGES[$package]), '+-'));
    match ($package) {
        'laravel' => story(new Laravel($driver, $host, (int) $port)),
        'php-lock' => story(new PhpLock($driver, $host, (int) $port)),
        'symfony' => symfony($host, (int) $port),
    };
    ask('gone');
    say('ok close');
} catch (Throwable $e) {
    fwrite(STDERR, "$e\n");
    say('fail', $argv[1], get_class($e) . ': ' . $e->getMessage());
    exit(1);
}

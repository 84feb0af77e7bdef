<?php
// predis. REDLOCKD_PREDIS names its autoload.php where it is not on PHP's path.
require getenv('REDLOCKD_PREDIS') ?: 'Predis/autoload.php';
require __DIR__ . '/../php-story/story.php';

(new Story(new class {
    public function version(): string
    {
        return Predis\Client::VERSION;
    }

    public function connect(string $host, int $port, ?string $password): Predis\Client
    {
        $parameters = ['host' => $host, 'port' => $port] + ($password === null ? [] : ['password' => $password]);
        if (getenv('REDLOCKD_PREDIS_PROTOCOL') !== false) {
            $parameters['protocol'] = (int) getenv('REDLOCKD_PREDIS_PROTOCOL');
        }
        $client = new Predis\Client($parameters);
        $client->connect();
        return $client;
    }

    public function ask(Predis\Client $client, string ...$args): mixed
    {
        try {
            $got = $client->executeCommand(new Predis\Command\RawCommand(...self::raw($args)));
        } catch (Predis\Response\ServerException $e) {
            throw new Refused($e->getMessage());
        }
        return $got instanceof Predis\Response\Status ? (string) $got : $got;
    }

    public function pipeline(Predis\Client $client, array $commands): array
    {
        return $client->pipeline(function ($pipe) use ($commands) {
            foreach ($commands as $args) {
                $pipe->executeCommand(new Predis\Command\RawCommand(...self::raw($args)));
            }
        });
    }

    /** Predis 1 takes all words as one array; later ones take the name apart. */
    private static function raw(array $args): array
    {
        return version_compare(Predis\Client::VERSION, '2.0', '<') ? [$args] : [array_shift($args), $args];
    }

    public function renew(Predis\Client $client): void {} // it connects again by itself

    public function close(Predis\Client $client): void
    {
        $client->disconnect();
    }
}))->tell();

<?php
// phpredis, the extension.
require __DIR__ . '/../php-story/story.php';

(new Story(new class {
    public function version(): string
    {
        return phpversion('redis');
    }

    public function connect(string $host, int $port, ?string $password): Redis
    {
        $client = new Redis();
        $client->connect($host, $port);
        if ($password !== null) {
            $client->auth($password);
        }
        return $client;
    }

    /** false is both nil and an error, which getLastError tells apart; true is OK. */
    public function ask(Redis $client, string ...$args): mixed
    {
        if ($args === ['PING']) {
            return $client->ping() === true ? 'PONG' : 'not PONG';
        }
        $client->clearLastError();
        $got = $client->rawCommand(...$args);
        if ($client->getLastError() !== null) {
            throw new Refused($client->getLastError());
        }
        return $got === false ? null : $got;
    }

    public function pipeline(Redis $client, array $commands): array
    {
        $pipe = $client->pipeline();
        foreach ($commands as $args) {
            $pipe->rawCommand(...$args);
        }
        return $pipe->exec();
    }

    public function renew(Redis $client): void {} // it connects again by itself

    public function close(Redis $client): void
    {
        $client->close();
    }
}))->tell();

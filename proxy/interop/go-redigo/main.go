// redigo, with a pool that checks a connection before each use, as the documentation
// of redigo proposes.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	story "redlockd/proxy/interop/go-story"
)

type client struct{ pool *redis.Pool }

func connect(_ context.Context, address, password string) (story.Client, error) {
	return client{&redis.Pool{
		MaxIdle: 3,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", address, redis.DialPassword(password))
		},
		TestOnBorrow: func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		},
	}}, nil
}

func (c client) Do(ctx context.Context, args ...string) (any, error) {
	conn, err := c.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return reply(conn.Do(args[0], anys(args[1:])...))
}

func (c client) Pipeline(ctx context.Context, commands [][]string) ([]any, error) {
	conn, err := c.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for _, args := range commands {
		if err := conn.Send(args[0], anys(args[1:])...); err != nil {
			return nil, err
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for i := range replies {
		if replies[i], err = reply(conn.Receive()); err != nil {
			return replies, err
		}
	}
	return replies, nil
}

func (c client) Close() error { return c.pool.Close() }

// reply has redigo's []byte as strings.
func reply(value any, err error) (any, error) {
	switch v := value.(type) {
	case nil:
		if err == nil {
			err = story.Nil
		}
		return nil, err
	case []byte:
		return string(v), err
	case []any:
		for i := range v {
			v[i], _ = reply(v[i], nil)
		}
	}
	return value, err
}

func anys(args []string) []any {
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
	}
	return values
}

func isServer(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func main() {
	story.Tell(story.Library{Module: "github.com/gomodule/redigo", Connect: connect, IsServer: isServer})
}

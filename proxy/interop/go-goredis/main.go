// go-redis v9. Argument: default or protocol-2.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"

	story "redlockd/proxy/interop/go-story"
)

type client struct{ *redis.Client }

func connect(_ context.Context, address, password string) (story.Client, error) {
	options := &redis.Options{Addr: address, Password: password}
	if os.Args[1] == "protocol-2" {
		options.Protocol = 2
	}
	return client{redis.NewClient(options)}, nil
}

func (c client) Do(ctx context.Context, args ...string) (any, error) {
	return reply(c.Client.Do(ctx, anys(args)...).Result())
}

func (c client) Pipeline(ctx context.Context, commands [][]string) ([]any, error) {
	pipe := c.Client.Pipeline()
	for _, args := range commands {
		pipe.Do(ctx, anys(args)...)
	}
	done, err := pipe.Exec(ctx)
	replies := make([]any, len(done))
	for i, d := range done {
		replies[i] = d.(*redis.Cmd).Val()
	}
	return replies, err
}

func reply(value any, err error) (any, error) {
	if errors.Is(err, redis.Nil) {
		return nil, story.Nil
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
	story.Tell(story.Library{Module: "github.com/redis/go-redis/v9", Connect: connect, IsServer: isServer})
}

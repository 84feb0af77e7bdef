// go-redis v9. Argument: default, protocol-2 or cluster.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	story "redlockd/proxy/interop/go-story"
)

type client struct{ redis.UniversalClient }

func connect(_ context.Context, address, password string) (story.Client, error) {
	options := &redis.Options{Addr: address, Password: password}
	switch os.Args[1] {
	case "protocol-2":
		options.Protocol = 2
	case "cluster":
		// It reads the map again after this interval alone, not when a daemon is gone.
		return client{redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}, ClusterStateReloadInterval: 5 * time.Second})}, nil
	}
	return client{redis.NewClient(options)}, nil
}

func (c client) Do(ctx context.Context, args ...string) (any, error) {
	return reply(c.UniversalClient.Do(ctx, anys(args)...).Result())
}

func (c client) Pipeline(ctx context.Context, commands [][]string) ([]any, error) {
	pipe := c.UniversalClient.Pipeline()
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

// rueidis. Argument: default, disable-cache, always-resp2 or cluster. It finds out by itself whether
// it speaks to a cluster; then it has to be told the keys.
package main

import (
	"context"
	"os"
	"strings"

	"github.com/redis/rueidis"

	story "redlockd/proxy/interop/go-story"
)

type client struct{ rueidis.Client }

func connect(_ context.Context, address, password string) (story.Client, error) {
	options := rueidis.ClientOption{InitAddress: []string{address}, Password: password}
	switch os.Args[1] {
	case "disable-cache":
		options.DisableCache = true
	case "always-resp2": // has no client-side caching
		options.DisableCache, options.AlwaysRESP2 = true, true
	}
	made, err := rueidis.NewClient(options)
	return client{made}, err
}

func (c client) command(args []string) rueidis.Completed {
	if os.Args[1] == "cluster" && len(args) > 1 && strings.HasPrefix(args[0], "D") && args[0][1] != 'M' {
		return c.B().Arbitrary(args[0]).Keys(args[1]).Args(args[2:]...).Build()
	}
	return c.B().Arbitrary(args...).Build()
}

func (c client) Do(ctx context.Context, args ...string) (any, error) {
	return reply(c.Client.Do(ctx, c.command(args)))
}

func (c client) Pipeline(ctx context.Context, commands [][]string) ([]any, error) {
	batch := make(rueidis.Commands, len(commands))
	for i, args := range commands {
		batch[i] = c.command(args)
	}
	replies := make([]any, len(commands))
	for i, result := range c.DoMulti(ctx, batch...) {
		var err error
		if replies[i], err = reply(result); err != nil {
			return replies, err
		}
	}
	return replies, nil
}

func (c client) Close() error {
	c.Client.Close()
	return nil
}

func reply(result rueidis.RedisResult) (any, error) {
	value, err := result.ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, story.Nil
	}
	return value, err
}

func isServer(err error) bool {
	_, is := rueidis.IsRedisErr(err)
	return is
}

func main() {
	story.Tell(story.Library{Module: "github.com/redis/rueidis", Connect: connect, IsServer: isServer})
}

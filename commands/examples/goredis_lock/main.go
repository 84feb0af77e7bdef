// The package redlockd/client for go-redis (commands/clients). Run: go run ./goredis_lock 127.0.0.1:7379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockd/client"
)

// A short piece of work, then two that last until the lock is lost.
func main() {
	server := redis.Options{Addr: "127.0.0.1:7379"}
	if len(os.Args) > 1 {
		server.Addr = os.Args[1]
	}
	invoice := client.Lock{Key: "invoice:7", TTL: 10 * time.Second, Wait: 10 * time.Minute}
	for _, duration := range []time.Duration{0, time.Hour, time.Hour} {
		err := invoice.Do(context.Background(), server, func(ctx context.Context, held *client.Held) error {
			fmt.Println("granted fence", held.Fence)
			select {
			case <-time.After(duration):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if errors.Is(err, client.ErrLost) {
			fmt.Println("lost")
		} else if err != nil {
			log.Fatal(err)
		} else {
			fmt.Println("released")
		}
	}
}

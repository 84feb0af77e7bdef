package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// poll has redsync take a lock that others keep busy, over REDLOCKD_ADDR: one server, or several with a
// comma between. It prints how many ms each acquire took, until its standard input ends.
func poll() {
	var pools []syncredis.Pool
	for address := range strings.SplitSeq(os.Getenv("REDLOCKD_ADDR"), ",") {
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: address})))
	}
	fmt.Println("library", version("github.com/go-redsync/redsync/v4"))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		mutex := redsync.New(pools...).NewMutex(os.Getenv("REDLOCKD_KEY"), redsync.WithExpiry(10*time.Second))
		began := time.Now()
		for mutex.Lock() != nil { // 32 tries, 50 to 250 ms apart, and then again
		}
		fmt.Println("took", time.Since(began).Milliseconds())
		time.Sleep(20 * time.Millisecond)
		_, _ = mutex.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
}

package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// rolled counts the commands while daemons restarted, by their outcome.
type rolled struct {
	mu                            sync.Mutex
	pairs, waits, refused, failed int
	why                           []string
}

// roll locks with four goroutines and one client, until the driver says so.
func (t *teller) roll(ctx context.Context) {
	client, err := t.library.Connect(ctx, os.Getenv("REDLOCKD_ADDR"), "")
	if err != nil {
		fmt.Println("fail connect", err)
		os.Exit(1)
	}
	t.client = client
	fmt.Println("ready")
	over := make(chan struct{})
	go func() { t.answers.Scan(); close(over) }()
	var r rolled
	var working sync.WaitGroup
	for i := range 4 {
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
				r.note(t.pair(ctx, i, i == 0 && n%3 == 0, &r))
			}
		})
	}
	working.Wait()
	for _, text := range r.why {
		fmt.Println("failure", strings.ReplaceAll(text, "\n", " "))
	}
	fmt.Println("rolled", r.pairs, r.waits, r.refused, r.failed)
}

func (r *rolled) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pairs++
	if err == nil {
		return
	}
	r.failed++
	if len(r.why) < 3 {
		r.why = append(r.why, err.Error())
	}
}

// pair takes a lock and releases it. A wait that is refused is repeated until it is granted.
func (t *teller) pair(ctx context.Context, i int, waits bool, r *rolled) error {
	key, token := fmt.Sprint(t.key, ":", i), fmt.Sprint("rolling-", t.key, "-", i)
	lock := []string{"DLOCK", key, "10000", "TOKEN", token}
	if waits {
		key = t.key + ":w" // the driver takes it, too
		lock = []string{"DLOCK", key, "10000", "TOKEN", token, "WAIT", "2000"}
	}
	_, err := t.client.Do(ctx, lock...)
	refused := 0
	for end := time.Now().Add(30 * time.Second); waits && err != nil && strings.Contains(err.Error(), "SHUTDOWN") && time.Now().Before(end); refused++ {
		time.Sleep(50 * time.Millisecond)
		_, err = t.client.Do(ctx, lock...)
	}
	if waits {
		r.mu.Lock()
		r.waits++
		r.refused += min(refused, 1)
		r.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("DLOCK: %w", err)
	}
	if _, err = t.client.Do(ctx, "DUNLOCK", key, token); err != nil && !errors.Is(err, Nil) {
		return fmt.Errorf("DUNLOCK: %w", err)
	}
	return nil
}

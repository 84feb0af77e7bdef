// go-redis: one UPDATE under a lock. Run: go run ./goredis 127.0.0.1:7379
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const update = `UPDATE invoices SET state = 'sent', fence = $1 WHERE id = 7 AND fence <= $1`

func main() {
	address := "127.0.0.1:7379"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := sendInvoice(context.Background(), address); err != nil {
		log.Fatal(err)
	}
}

func sendInvoice(ctx context.Context, address string) error {
	// The read timeout (70 s) is longer than the WAIT (60 s). Without retries no command is sent twice.
	client := redis.NewClient(&redis.Options{Addr: address, ReadTimeout: 70 * time.Second, MaxRetries: -1})
	defer client.Close()
	locks := client.Conn() // HOLD needs one connection that is never opened anew
	defer locks.Close()

	granted, err := locks.Do(ctx, "DLOCK", "invoice:7", 30000, "WAIT", 60000, "HOLD", 600000).Slice()
	if err != nil { // redis.Nil: another client still holds the lock
		return fmt.Errorf("DLOCK: %w", err)
	}
	token, validity, fence := granted[0].(string), granted[1].(int64), granted[2].(int64)
	defer func() {
		if released, err := locks.Do(ctx, "DUNLOCK", "invoice:7", token).Int64(); released != 1 {
			log.Print("the lock was over before its release: ", err)
		} else {
			fmt.Println("released", released)
		}
	}()
	fmt.Printf("granted fence %d, validity %d ms\n", fence, validity)

	sent := time.Now()
	validity, err = locks.Do(ctx, "DEXTEND", "invoice:7", token, 30000).Int64() // confirms the lock after a WAIT
	if err != nil {                                                             // redis.Nil: the lock was lost
		return fmt.Errorf("DEXTEND: %w", err)
	}
	fmt.Printf("confirmed validity %d ms\n", validity)

	// Longer work sends DEXTEND again before this deadline.
	work, cancel := context.WithDeadline(ctx, sent.Add(time.Duration(validity)*time.Millisecond))
	defer cancel()
	// With database/sql: db.ExecContext(work, update, fence); 0 rows: a later holder has already written.
	fmt.Printf("update %s with fence %d\n", update, fence)
	return work.Err()
}

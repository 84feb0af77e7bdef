// rueidis: one UPDATE under a lock. Run: go run ./rueidis 127.0.0.1:7379
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/rueidis"
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
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	if err != nil {
		return err
	}
	defer client.Close()
	locks, _ := client.Dedicate() // HOLD needs one connection that is never opened anew
	defer locks.Close()           // Close ends the connection; the second result of Dedicate would pool it

	// Blocking() has no read timeout of its own. This one (70 s) is longer than the WAIT (60 s).
	wait, stop := context.WithTimeout(ctx, 70*time.Second)
	defer stop()
	words := []string{"DLOCK", "invoice:7", "30000", "WAIT", "60000", "HOLD", "600000"}
	reply, err := locks.Do(wait, locks.B().Arbitrary(words...).Blocking()).ToAny()
	if err != nil { // rueidis.IsRedisNil(err): another client still holds the lock
		return fmt.Errorf("DLOCK: %w", err)
	}
	granted := reply.([]any)
	token, validity, fence := granted[0].(string), granted[1].(int64), granted[2].(int64)
	defer func() {
		released, err := locks.Do(ctx, locks.B().Arbitrary("DUNLOCK", "invoice:7", token).Build()).ToInt64()
		if released != 1 {
			log.Print("the lock was over before its release: ", err)
		} else {
			fmt.Println("released", released)
		}
	}()
	fmt.Printf("granted fence %d, validity %d ms\n", fence, validity)

	sent := time.Now()
	validity, err = locks.Do(ctx, locks.B().Arbitrary("DEXTEND", "invoice:7", token, "30000").Build()).ToInt64()
	if err != nil { // rueidis.IsRedisNil(err): the lock was lost
		return fmt.Errorf("DEXTEND, which confirms the lock after a WAIT: %w", err)
	}
	fmt.Printf("confirmed validity %d ms\n", validity)

	// Longer work sends DEXTEND again before this deadline.
	work, cancel := context.WithDeadline(ctx, sent.Add(time.Duration(validity)*time.Millisecond))
	defer cancel()
	// With database/sql: db.ExecContext(work, update, fence); 0 rows: a later holder has already written.
	fmt.Printf("update %s with fence %d\n", update, fence)
	return work.Err()
}

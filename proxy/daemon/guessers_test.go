package daemon

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// dialFrom is a client with an address of its own.
func dialFrom(t *testing.T, host, address string) *client {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: testTimeout}
	conn, err := from.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("a second loopback address is needed: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(4 * testTimeout)); err != nil {
		t.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

// guess sends wrong passwords from a host, on a connection of their own until it
// is closed, and counts the answers by their first word.
func guess(host, address string, said map[string]int) error {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: testTimeout}
	conn, err := from.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(strings.Repeat("AUTH guess\r\n", 3))); err != nil {
		return err
	}
	for replies := bufio.NewScanner(conn); replies.Scan(); {
		word, _, _ := strings.Cut(replies.Text(), " ")
		said[word]++
	}
	return nil
}

// How many passwords are looked at depends on the time that the crowd takes and
// the addresses it has, not on its size; a client at another one notices nothing.
// There are several so that none of them connects too often.
func TestGuessers_TenThousandWrongLoginsAreBoundedAndOthersAreServed(t *testing.T) {
	const hosts, connections = 8, 3334 // three guesses a connection
	address := serveHere(t, nil, "--embedded", "3", "--requirepass", "secret")
	c := dialFrom(t, "127.0.0.2", address)
	if got := c.ask(t, "AUTH secret"); got != "+OK" {
		t.Fatalf("AUTH: %s", got)
	}
	c.lock(t, "warm-up")
	work := make(chan struct{})
	counts, errs := make([]map[string]int, hosts), make(chan error, hosts) // each one's first error
	began := time.Now()
	var crowd sync.WaitGroup
	for i := range hosts {
		host := fmt.Sprint("127.0.1.", i+1)
		counts[i] = map[string]int{}
		crowd.Go(func() {
			var first error
			for range work {
				if err := guess(host, address, counts[i]); err != nil && first == nil {
					first = err
				}
			}
			errs <- first
		})
	}
	served := 0
	for i := range connections {
		work <- struct{}{}
		if i%10 == 0 {
			key := fmt.Sprint("key-", i)
			if got := c.ask(t, "DUNLOCK %s %s", key, c.lock(t, key)); got != ":1" {
				t.Fatalf("while others guess: DUNLOCK %s: %s", key, got)
			}
			served++
		}
	}
	close(work)
	crowd.Wait()
	seconds := int(time.Since(began)/time.Second) + 1
	for range hosts {
		if err := <-errs; err != nil {
			t.Errorf("a guesser: %v", err)
		}
	}
	looked, refused := 0, 0
	for _, said := range counts {
		looked += said["-WRONGPASS"]
		refused += said["-TRYLATER"]
		delete(said, "-WRONGPASS")
		delete(said, "-TRYLATER")
		if len(said) != 0 {
			t.Errorf("a guesser was also told %v", said)
		}
	}
	// Of the one name twenty at once and twenty a second. Two a second more are
	// checked and answered as if they had not been.
	if most := 20 * (1 + seconds); looked < 20 || looked > most {
		t.Errorf("%d passwords were looked at in %d s, allowed are 20 to %d", looked, seconds, most)
	}
	if looked+refused != 3*connections {
		t.Errorf("%d answers to %d guesses", looked+refused, 3*connections)
	}
	stats := c.info(t, "stats")
	if stats["acl_access_denied_auth"] != fmt.Sprint(looked+refused) {
		t.Errorf("INFO shows %s refused logins, want %d", stats["acl_access_denied_auth"], looked+refused)
	}
	unchecked, err := strconv.Atoi(stats["throttled_auths"])
	if hidden := refused - unchecked; err != nil || hidden < 0 || hidden > 2*(1+seconds) {
		t.Errorf("INFO shows %s throttled logins, want %d to %d", stats["throttled_auths"], refused-2*(1+seconds), refused)
	}
	t.Logf("%d guesses in %v: %d looked at; %d locks served meanwhile", looked+refused, time.Since(began).Round(time.Millisecond), looked, served)
}

// Plays the contract of commands/WIRE.md against a server: go run ./conformance ADDRESS. Each step
// prints a line; the exit code is 1 if one failed. It takes locks, ids and connections of its own,
// named conformance:…, needs the categories lock, read, id and force, and a few seconds.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	password := flag.String("password", os.Getenv("LOCK_PASSWORD"), "of the user, LOCK_PASSWORD without it")
	user := flag.String("user", os.Getenv("LOCK_USER"), "LOCK_USER without it")
	patience := flag.Duration("patience", 10*time.Second, "for one reply that must come")
	only := flag.String("only", "", "how the names of the steps begin that are played")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: conformance [OPTION…] HOST:PORT")
		os.Exit(2)
	}
	t := target{address: flag.Arg(0), user: *user, password: *password, patience: *patience, only: *only}
	if failed := t.play(os.Stdout); failed > 0 {
		fmt.Fprintf(os.Stderr, "conformance: %d of %d steps failed\n", failed, len(steps))
		os.Exit(1)
	}
}

// target is the server.
type target struct {
	address, user, password string
	patience                time.Duration
	only                    string // how the names of the steps begin, "" for all
}

// play runs every step on connections and a key of its own.
func (t target) play(out io.Writer) (failed int) {
	run := time.Now().UnixNano()
	for i, s := range steps {
		if !strings.HasPrefix(s.name, t.only) {
			continue
		}
		err := t.step(s, fmt.Sprintf("conformance:%x:%d", run, i))
		if err != nil {
			failed++
			fmt.Fprintf(out, "FAIL %s: %v\n", s.name, err)
			continue
		}
		fmt.Fprintf(out, "ok   %s\n", s.name)
	}
	return failed
}

// step turns the panic of a failed check into its error.
func (t target) step(s step, key string) (err error) {
	p := &player{target: t, key: key}
	defer p.close()
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed
		default:
			panic(failed)
		}
	}()
	s.play(p)
	return nil
}

type failure string

func (f failure) Error() string { return string(f) }

func fail(format string, values ...any) { panic(failure(fmt.Sprintf(format, values...))) }

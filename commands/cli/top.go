// redlockd top: masters, rates, waits and locks of a daemon on a terminal.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	signals "os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

const (
	refreshInterval = time.Second
	resizeInterval  = 200 * time.Millisecond // between two looks at the size of the terminal
	// The alternate screen, without cursor and without breaks of long lines; and back.
	enterScreen, leaveScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

const topUsage = `redlockd top [OPTION…]: shows masters, rates, waits and the locks held longest, each second; q ends it

`

const topNotes = `
It sends INFO, DMASTERS, DWAITERS, DLOCKS and DINFO: a user needs the categories info and read.
LOCK_USER and LOCK_PASSWORD authenticate to the daemon, LOCK_CONNECT is --connect.
NO_COLOR=1 turns colours off.
`

func topHelp() string { return topUsage + helpRows(optionsOf(topFlags(&topOptions{}))) + topNotes }

// topOptions is the command line of top.
type topOptions struct {
	connection
	once bool
}

func topFlags(o *topOptions) *pflag.FlagSet {
	flags := o.connection.flags("top")
	flags.BoolVar(&o.once, "once", false, "\tprint one snapshot as text, with the rates of a second, and end")
	return flags
}

func (a *App) topOptions(args []string) (topOptions, error) {
	o := topOptions{connection: a.connection()}
	flags := topFlags(&o)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, errors.New("write top [OPTION…]; see redlockd top --help")
	}
	err := o.check()
	return o, err
}

func (a *App) top(ctx context.Context, args []string) error {
	o, err := a.topOptions(args)
	if errors.Is(err, pflag.ErrHelp) {
		return a.print(topHelp())
	}
	if err != nil {
		return fmt.Errorf("top: %w%w", err, usage{})
	}
	d := a.daemons(o.connection)
	defer d.close()
	switch out, isFile := a.Out.(*os.File); {
	case o.once:
		err = a.topOnce(ctx, &monitor{daemons: d})
	case !isFile || !term.IsTerminal(int(out.Fd())) || a.variable("TERM") == "dumb":
		err = fmt.Errorf("the output is no terminal that can be redrawn; use redlockd top --once%w", usage{})
	default:
		err = a.topOn(ctx, out, &monitor{daemons: d})
	}
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}

// topOnce prints the second of two refreshes, because a rate needs both.
func (a *App) topOnce(ctx context.Context, m *monitor) error {
	if _, err := m.refresh(ctx); err != nil {
		return err
	}
	pause(ctx, refreshInterval)
	s, err := m.refresh(ctx)
	if err != nil {
		return err
	}
	return a.print(render(s, 0, 0))
}

// topOn draws on a terminal until a key or a signal ends it. All it takes are lines that are
// written again, a few escape sequences and one key. A library for terminals would add an event
// loop and a database of terminals; golang.org/x/term is in use for passwords anyway.
func (a *App) topOn(ctx context.Context, out *os.File, m *monitor) error {
	ctx, stop := signals.NotifyContext(ctx, syscall.SIGHUP) // its default would leave the terminal as it is
	restore, keys := func() { _, _ = io.WriteString(out, leaveScreen) }, make(chan byte)
	if in, ok := a.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			stop()
			return fmt.Errorf("the terminal cannot be read key by key: %w", err)
		}
		leave := restore
		restore = func() { leave(); _ = term.Restore(int(in.Fd()), state) } // nothing else could restore it
		go readKeys(ctx, in, keys)
	}
	restore = sync.OnceFunc(restore)
	refreshes := make(chan refreshed)
	var refreshing sync.WaitGroup
	refreshing.Go(func() {
		defer func() {
			if bug := recover(); bug != nil {
				restore()
				panic(bug)
			}
		}()
		m.refreshUntil(ctx, refreshes)
	})
	defer refreshing.Wait()
	defer stop()
	defer restore()
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	return draw(ctx, out, refreshes, keys, a.variable("NO_COLOR") == "")
}

// readKeys reads until the terminal ends. The last read may outlive top.
func readKeys(ctx context.Context, in io.Reader, keys chan<- byte) {
	for key := make([]byte, 1); ; {
		if _, err := in.Read(key); err != nil {
			return
		}
		select {
		case keys <- key[0]:
		case <-ctx.Done():
			return
		}
	}
}

// refreshed is a snapshot, or the error that ends top.
type refreshed struct {
	snapshot
	err error
}

// refreshUntil refreshes until ctx ends, or until no further try can succeed. While there is no
// connection, the last snapshot stays.
func (m *monitor) refreshUntil(ctx context.Context, refreshes chan<- refreshed) {
	last := snapshot{title: "redlockd top: connecting"}
	for since := time.Now(); ; pause(ctx, refreshInterval) {
		s, err := m.refresh(ctx)
		switch {
		case err == nil:
			last, since = s, time.Now()
		case retryable(err):
			last.lost, err = fmt.Sprintf("%v; trying again since %s", err, since.Format(time.TimeOnly)), nil
		}
		select {
		case refreshes <- refreshed{last, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// draw draws each snapshot, and the last one again when the size of the terminal changes.
func draw(ctx context.Context, out *os.File, refreshes <-chan refreshed, keys <-chan byte, colours bool) error {
	resize := time.NewTicker(resizeInterval)
	defer resize.Stop()
	var shown snapshot
	var width, height int
	for {
		before := [2]int{width, height}
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			if key == 'q' || key == 3 { // Ctrl-C
				return nil
			}
			continue
		case r := <-refreshes:
			if r.err != nil {
				return r.err
			}
			shown, before = r.snapshot, [2]int{}
		case <-resize.C:
		}
		var err error
		if width, height, err = term.GetSize(int(out.Fd())); err != nil {
			return fmt.Errorf("the size of the terminal is unknown: %w", err)
		}
		if before == [2]int{width, height} {
			continue
		}
		shown.colours, shown.keys = colours, true
		text := strings.TrimRight(render(shown, width, height), "\n")
		// Everything is erased first: an erasure behind a full line would take its last character.
		if _, err := io.WriteString(out, "\x1b[H\x1b[J"+strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
			return err
		}
	}
}

// pause ends early with ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

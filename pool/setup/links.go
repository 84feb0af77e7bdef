// Links of subcommands: they end with the subcommand, and a step that takes long is shown.

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"redlockd/pool/wire"
)

const (
	// progressEvery is how often the log shows which master a subcommand waits for.
	progressEvery = time.Second
	// maxTries is how often a bootstrap sends what a master did not answer.
	maxTries = 3
)

// watched is a dialer whose connections end with the context of their dial. A master that
// keeps a subcommand waiting has a line in the log each second.
func watched(dial wire.Dialer, log *slog.Logger) wire.Dialer {
	return func(ctx context.Context, m wire.Master, db int) (wire.Link, error) {
		p := newProgress(m.Name, log)
		p.wait("connection and login")
		link, err := dial(ctx, m, db)
		p.wait("")
		if err != nil {
			p.end()
			return nil, explain(m, err)
		}
		return &watchedLink{Link: link, progress: p, release: context.AfterFunc(ctx, link.Close)}, nil
	}
}

// explain adds what a server without TLS, or with TLS alone, cannot report about itself.
func explain(m wire.Master, err error) error {
	var dial *net.OpError
	var reply *rueidis.RedisError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &reply): // no connection, or an answer
	case m.TLS != nil && timedOut(err):
		return fmt.Errorf("%w (a port without TLS does not answer a handshake: check rediss://)", err)
	case m.TLS == nil && !timedOut(err):
		return fmt.Errorf("%w (a port with TLS ends a connection without it: check redis://)", err)
	}
	return err
}

// timedOut reports whether the master did not answer in time.
func timedOut(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

type watchedLink struct {
	wire.Link
	progress *progress
	release  func() bool // of the context
}

func (l *watchedLink) Exchange(commands []wire.Command, replies []wire.Reply) []wire.Reply {
	l.progress.wait("answer to " + commands[len(commands)-1].Args[0])
	defer l.progress.wait("")
	return l.Link.Exchange(commands, replies)
}

func (l *watchedLink) Close() {
	l.release()
	l.progress.end()
	l.Link.Close()
}

// progress shows what a subcommand waits for from one master.
type progress struct {
	master string
	log    *slog.Logger

	mu     sync.Mutex
	step   string        // the last one
	began  time.Time     // of the step; zero = it does not wait
	waited time.Duration // in all steps before
	shown  time.Duration // what had been waited at the last look
	timer  *time.Timer
	ended  bool
}

func newProgress(master string, log *slog.Logger) *progress {
	p := &progress{master: master, log: log}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(progressEvery, p.show)
	return p
}

// wait begins a step; "" ends it.
func (p *progress) wait(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited, p.began = p.totalLocked(), time.Time{}
	if step != "" {
		p.step, p.began = step, time.Now()
	}
}

func (p *progress) totalLocked() time.Duration {
	if p.began.IsZero() {
		return p.waited
	}
	return p.waited + time.Since(p.began)
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	total := p.totalLocked()
	if total-p.shown >= progressEvery/2 { // else a short step happens to be under way
		p.log.Info("waiting for a master", "master", p.master, "step", p.step, "for", humanDuration(total))
	}
	p.shown = total
	p.timer.Reset(progressEvery)
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
}

// retried is a dialer whose links dial again, and send again what was not answered: for
// commands that may all be executed twice.
func retried(dial wire.Dialer) wire.Dialer {
	return func(ctx context.Context, m wire.Master, db int) (link wire.Link, err error) {
		for range maxTries {
			if link, err = dial(ctx, m, db); err == nil {
				return &retriedLink{link, func(db int) (wire.Link, error) { return dial(ctx, m, db) }, db}, nil
			}
			if !timedOut(err) || ctx.Err() != nil {
				break
			}
		}
		return nil, err
	}
}

type retriedLink struct {
	wire.Link
	dial func(db int) (wire.Link, error)
	db   int // that is selected
}

func (l *retriedLink) Exchange(commands []wire.Command, replies []wire.Reply) []wire.Reply {
	replies = l.Link.Exchange(commands, replies)
	for try := 1; try < maxTries && !answered(commands, replies); try++ {
		link, err := l.dial(l.db)
		if err != nil {
			continue
		}
		l.Link.Close()
		l.Link = link
		replies = l.Link.Exchange(commands, replies[:0])
	}
	for i, c := range commands {
		if c.Args[0] == "SELECT" && i < len(replies) && replies[i].Err == nil {
			l.db, _ = strconv.Atoi(c.Args[1]) // it has been selected, so it is a number
		}
	}
	return replies
}

func selectDB(link wire.Link, db int) error {
	reply, err := wire.AskOne(link, "SELECT", strconv.Itoa(db))
	return cmp.Or(err, reply.Err)
}

// answered reports whether the master answered every command, if only with an error.
func answered(commands []wire.Command, replies []wire.Reply) bool {
	for _, r := range replies {
		var fromMaster wire.MasterError
		if r.Err != nil && !errors.As(r.Err, &fromMaster) {
			return false
		}
	}
	return len(replies) == len(commands)
}

// What happens when masters fail under load? One is stopped, as by a hanging
// disk: connections stay and nothing is answered. Or a majority is killed. Each
// run has masters and a daemon of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

const (
	failureCallers = 64
	// shock is the time a daemon may take to notice that a master hangs: its
	// master timeout. What began in it is reported apart.
	shock = 100 * time.Millisecond
)

func failureScenarios() []scenario {
	n := failureCallers
	stalled := redsyncName(n) + ", one master stopped"
	return []scenario{
		{name: stalled, page: pageFailures, run: oneStopped(n, openRedsync)},
		{name: multiplexedName(n) + ", one master stopped", page: pageFailures, peer: stalled,
			run: oneStopped(n, openMultiplexed)},
		{name: "daemon, a majority of masters killed", page: pageFailures, run: majorityKilled},
	}
}

// oneStopped measures half of the span before the fault, and half after it.
func oneStopped(n int, open opener) runner {
	return func(ctx context.Context, shared *stand, span time.Duration) (figures, error) {
		st, err := shared.another(ctx, standOptions{})
		if err != nil {
			return nil, err
		}
		defer st.close()
		c, err := open(ctx, st, n)
		if err != nil {
			return nil, err
		}
		defer c.close()
		l := startLoad(c.workers)
		err = stopOne(ctx, l, st.masters[0], span/2)
		failed := l.stop()
		if err != nil {
			return nil, err
		}
		f := l.beforeAndAfter(span / 2)
		f[failures] = float64(l.failed)
		shared.note(failed)
		if f[pairsBefore] == 0 {
			return nil, errors.Join(errors.New("no pair was completed before the fault"), failed)
		}
		return f, nil
	}
}

// stopOne takes the load through its stages. The master runs again when it
// returns, so that clients which wait for it can end.
func stopOne(ctx context.Context, l *load, m *master, span time.Duration) error {
	err := pause(ctx, warmUp)
	l.enter(stageSteady)
	err = errors.Join(err, pause(ctx, span))
	l.enter(stageShock)
	err = errors.Join(err, m.process.signal(syscall.SIGSTOP), pause(ctx, shock))
	l.enter(stageAfter)
	err = errors.Join(err, pause(ctx, span))
	l.enter(stageDone)
	l.ended.Store(true)
	return errors.Join(err, m.process.signal(syscall.SIGCONT))
}

func (l *load) beforeAndAfter(span time.Duration) figures {
	f := figures{}
	done, acquires := l.sum(stageSteady)
	f[pairsBefore] = float64(done) / span.Seconds()
	f[beforeP50], f[beforeP99] = acquires.quantile(0.50), acquires.quantile(0.99)
	_, acquires = l.sum(stageShock)
	f[slowest] = acquires.quantile(1) / 1000
	done, acquires = l.sum(stageAfter)
	f[pairsAfter] = float64(done) / span.Seconds()
	if acquires.total > 0 {
		f[afterP50], f[afterP99] = acquires.quantile(0.50), acquires.quantile(0.99)
	}
	return f
}

// majorityKilled leaves a minority and asks until the daemon says so.
func majorityKilled(ctx context.Context, shared *stand, _ time.Duration) (figures, error) {
	st, err := shared.another(ctx, standOptions{})
	if err != nil {
		return nil, err
	}
	defer st.close()
	conn, err := dialRESP(ctx, st.daemon.address)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	for _, m := range st.masters[:len(st.masters)/2+1] {
		m.process.kill()
	}
	killed := time.Now()
	for n := 0; ; n++ {
		began := time.Now()
		_, err := conn.do("DLOCK", fmt.Sprintf("bench:minority:%d", n), "10000")
		switch {
		case err == nil && time.Since(killed) < talkPatience:
			continue // votes that were given before the end
		case err == nil || !strings.HasPrefix(err.Error(), "NOQUORUM "):
			return nil, fmt.Errorf("a majority of masters is dead, and DLOCK says %v", err)
		}
		return figures{
			firstNoQuorum:  milliseconds(time.Since(killed)),
			noQuorumAnswer: milliseconds(time.Since(began)),
		}, nil
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

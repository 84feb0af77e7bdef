// Failures of masters under load. One master is stopped, as by a hanging disk: its
// connections stay open and it sends no replies. Or a majority is killed. Each run has
// its own masters and its own daemon.

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
	// detectionTime is the time that a daemon may need to detect a hanging master: its
	// master timeout. Acquires that begin in it are reported separately.
	detectionTime = 100 * time.Millisecond
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
	return func(ctx context.Context, shared *testbed, span time.Duration) (figures, error) {
		tb, err := shared.startAnother(ctx, testbedOptions{})
		if err != nil {
			return nil, err
		}
		defer tb.close()
		c, err := open(ctx, tb, n)
		if err != nil {
			return nil, err
		}
		defer c.close()
		l := startLoad(c.workers)
		err = stopOne(ctx, l, tb.masters[0], span/2)
		failed := l.stop()
		if err != nil {
			return nil, err
		}
		f := l.beforeAndAfter(span / 2)
		f[failures] = float64(l.failed)
		shared.warn(failed)
		if f[pairsBefore] == 0 {
			return nil, errors.Join(errors.New("no pair was completed before the fault"), failed)
		}
		return f, nil
	}
}

// stopOne moves the load through its stages. The master runs again when stopOne returns, so
// that clients which wait for it can end.
func stopOne(ctx context.Context, l *load, m *master, span time.Duration) error {
	err := pause(ctx, warmUp)
	l.enter(stageSteady)
	err = errors.Join(err, pause(ctx, span))
	l.enter(stageFault)
	err = errors.Join(err, m.process.signal(syscall.SIGSTOP), pause(ctx, detectionTime))
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
	_, acquires = l.sum(stageFault)
	f[slowest] = acquires.quantile(1) / 1000
	done, acquires = l.sum(stageAfter)
	f[pairsAfter] = float64(done) / span.Seconds()
	if acquires.total > 0 {
		f[afterP50], f[afterP99] = acquires.quantile(0.50), acquires.quantile(0.99)
	}
	return f
}

// majorityKilled leaves a minority, and sends requests until the daemon reports NOQUORUM.
func majorityKilled(ctx context.Context, shared *testbed, _ time.Duration) (figures, error) {
	tb, err := shared.startAnother(ctx, testbedOptions{})
	if err != nil {
		return nil, err
	}
	defer tb.close()
	conn, err := dialRESP(ctx, tb.daemon.address)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	for _, m := range tb.masters[:len(tb.masters)/2+1] {
		m.process.kill()
	}
	killed := time.Now()
	for n := 0; ; n++ {
		began := time.Now()
		_, err := conn.do("DLOCK", fmt.Sprintf("bench:minority:%d", n), "10000")
		switch {
		case err == nil && time.Since(killed) < ioTimeout:
			continue // its votes came before the masters ended
		case err == nil || !strings.HasPrefix(err.Error(), "NOQUORUM "):
			return nil, fmt.Errorf("a majority of masters is dead, and DLOCK returned %v", err)
		}
		return figures{
			firstNoQuorum:  milliseconds(time.Since(killed)),
			noQuorumAnswer: milliseconds(time.Since(began)),
		}, nil
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// The lock of etcd, a peer of another kind: a queue of revisions in a replicated log.
// Three members run in one group. Like the masters, they do not wait for the disk.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

const (
	etcdMembers = 3
	etcdLease   = 10 // seconds, of a session
)

func etcdName(n int) string { return "etcd 3.4, three members, " + callers(n) }

func etcdScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64} {
		all = append(all, scenario{
			name: etcdName(n),
			page: pagePairs, peer: redsyncName(n), run: pairs(n, openEtcd),
		})
	}
	return all
}

// etcdProgram returns the etcd of ./install-peers, or the one of the machine.
func etcdProgram() (string, error) {
	unpacked := filepath.Join(peerHome(), "etcd", "usr", "bin", "etcd")
	if needPeer(unpacked) == nil {
		return unpacked, nil
	}
	installed, err := exec.LookPath("etcd")
	if err != nil {
		return "", needPeer(unpacked)
	}
	return installed, nil
}

func openEtcd(ctx context.Context, tb *testbed, n int) (workerSet, error) {
	program, err := etcdProgram()
	if err != nil {
		return workerSet{}, err
	}
	members, endpoints, err := startEtcd(program, tb.dir)
	c := workerSet{close: func() {
		for _, m := range members {
			m.kill()
		}
	}}
	if err == nil {
		err = c.openSessions(ctx, endpoints, n)
	}
	if err != nil {
		c.close()
		return workerSet{}, err
	}
	for _, m := range members {
		c.backends = append(c.backends, m.pid())
	}
	return c, nil
}

// startEtcd starts all members at once, because each waits for the others.
func startEtcd(program, dir string) (members []*process, endpoints []string, err error) {
	var peers, group []string
	for i := range etcdMembers {
		client, errClient := freeAddress()
		peer, errPeer := freeAddress()
		if err := errors.Join(errClient, errPeer); err != nil {
			return nil, nil, err
		}
		endpoints, peers = append(endpoints, "http://"+client), append(peers, "http://"+peer)
		group = append(group, fmt.Sprintf("m%d=http://%s", i, peer))
	}
	for i := range etcdMembers {
		own, err := os.MkdirTemp(dir, "etcd")
		if err != nil {
			return members, nil, err
		}
		cmd := exec.Command(program, "--name", fmt.Sprintf("m%d", i), "--data-dir", own, "--unsafe-no-fsync",
			"--listen-client-urls", endpoints[i], "--advertise-client-urls", endpoints[i],
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(group, ","), "--initial-cluster-state", "new")
		m, err := startProcess(cmd, filepath.Join(own, "log"))
		if err != nil {
			return members, nil, err
		}
		members = append(members, m)
	}
	return members, endpoints, nil
}

// openSessions gives every caller a session of one client.
func (ws *workerSet) openSessions(ctx context.Context, endpoints []string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	end := ws.close
	ws.close = func() {
		client.Close() // leases end with the members
		end()
	}
	for i := range n {
		lease, err := client.Grant(ctx, etcdLease)
		if err != nil {
			return fmt.Errorf("a lease of etcd's: %w", err)
		}
		session, err := concurrency.NewSession(client, concurrency.WithLease(lease.ID))
		if err != nil {
			return fmt.Errorf("a session of etcd's: %w", err)
		}
		ws.workers = append(ws.workers, &etcdWorker{session: session, keys: workerKeys("etcd", i)})
	}
	return nil
}

// freeAddress returns an address without a listener, below the port range of the kernel.
func freeAddress() (string, error) {
	for range portTries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(minPort+rand.IntN(maxPort-minPort+1)))
		if listener, err := net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("no free port on 127.0.0.1")
}

// etcdWorker acquires mutexes in its own session.
type etcdWorker struct {
	session *concurrency.Session
	keys    []string
	next    int
}

func (w *etcdWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	mutex := concurrency.NewMutex(w.session, key)
	stage, began := n.now()
	if err := mutex.Lock(ctx); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	n.acquired(stage, began)
	if err := mutex.Unlock(ctx); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	n.released()
	return nil
}

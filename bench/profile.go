// The profile of the daemon by which releases are optimized (go build -pgo): where its
// processor time goes under loads of one caller to many, and in every mode of a lock.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// profileLoads run one after the other. Each takes the same time, so each weighs by the
// processor time that the daemon needs then.
func profileLoads() []runner {
	loads := []runner{
		pairs(1, openTuned), pairs(64, openMultiplexed), pairs(256, openTuned),
		pairs(connectionCount, openConnections(1)), pairs(connectionCount, openConnections(16)),
	}
	for _, words := range profileModes {
		loads = append(loads, pairs(64, openWords(words)))
	}
	return loads
}

// profileModes are acquires through the daemon; %d is the number of the caller.
var profileModes = []string{
	"DLOCK profile:fair:%d " + leaseMillis + " FAIR",
	"DLOCK profile:shared " + leaseMillis + " SHARED",
	"DLOCK profile:permits " + leaseMillis + " LIMIT 256",
	"DMLOCK " + leaseMillis + " 3 profile:a:%d profile:b:%d profile:c:%d",
	"SET profile:set:%d profile-token-%d NX PX " + leaseMillis,
}

// recordProfile writes the profile of a daemon under all loads, span each.
func recordProfile(ctx context.Context, tb *testbed, span time.Duration, file string) error {
	d, err := tb.startDaemon("profiled", "--admin-listen", "127.0.0.1:0", "--pprof")
	if err != nil {
		return err
	}
	defer d.process.terminate()
	if err := d.ready(ctx); err != nil {
		return err
	}
	observed := *tb
	observed.daemon = d
	loads := profileLoads()
	took := time.Duration(len(loads)) * (span + warmUp)
	profile := make(chan error, 1)
	go func() { profile <- fetchProfile(ctx, d, took, file) }()
	var failed error
	for _, load := range loads {
		_, err := load(ctx, &observed, span)
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, <-profile)
}

// fetchProfile asks the daemon for a profile of so much time, and writes it.
func fetchProfile(ctx context.Context, d *daemon, took time.Duration, file string) error {
	_, rest, ok := strings.Cut(d.process.text(), "metrics and health on ")
	if !ok {
		return errors.New("the daemon printed no address of its admin endpoint")
	}
	address, _, _ := strings.Cut(rest, "\n")
	url := strings.TrimSuffix(strings.TrimSpace(address), "/") + "/debug/pprof/profile?seconds=" + strconv.Itoa(int(took.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", url, answer.Status, text)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// openWords opens callers that acquire with these words and release with what belongs to
// them, on one client.
func openWords(words string) opener {
	return func(_ context.Context, tb *testbed, n int) (workerSet, error) {
		o := tuned()
		o.InitAddress = []string{tb.daemon.address}
		client, err := rueidis.NewClient(o)
		if err != nil {
			return workerSet{}, err
		}
		c := workerSet{daemons: []*daemon{tb.daemon}, close: client.Close}
		for i := range n {
			c.workers = append(c.workers, newWordsWorker(client, strings.Fields(strings.ReplaceAll(words, "%d", strconv.Itoa(i)))))
		}
		return c, nil
	}
}

// wordsWorker is a caller that repeats one acquire and its release.
type wordsWorker struct {
	client           rueidis.Client
	acquire, release []string
	token            int // index of the token in release
}

func newWordsWorker(client rueidis.Client, acquire []string) *wordsWorker {
	if acquire[0] == "DMLOCK" {
		return &wordsWorker{client: client, acquire: acquire, release: append([]string{"DMUNLOCK", ""}, acquire[2:]...), token: 1}
	}
	return &wordsWorker{client: client, acquire: acquire, release: []string{"DUNLOCK", acquire[1], acquire[2]}, token: 2}
}

func (w *wordsWorker) turn(n *recorder) error {
	ctx := context.Background() // the daemon replies in time, or the run fails
	stage, began := n.now()
	granted, err := w.client.Do(ctx, w.client.B().Arbitrary(w.acquire...).Build()).ToMessage()
	if rueidis.IsRedisNil(err) {
		return errRefused
	}
	if err != nil {
		return err
	}
	n.acquired(stage, began)
	if granted.IsArray() {
		fields, err := granted.ToArray()
		if err != nil {
			return err
		}
		if w.release[w.token], err = fields[0].ToString(); err != nil {
			return err
		}
	}
	released, err := w.client.Do(ctx, w.client.B().Arbitrary(w.release...).Build()).ToMessage()
	if err != nil {
		return err
	}
	if count, err := released.AsInt64(); err == nil && count == 0 {
		return errNotReleased
	}
	n.released()
	return nil
}

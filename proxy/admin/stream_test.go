package admin

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// listenTo reads a stream over a socket until told returns true.
func listenTo(t *testing.T, address string, told func(kind, data string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		t.Fatalf("%s: %s", address, response.Status)
	}
	kind := ""
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if word, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = word
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && told(kind, data) {
			return
		}
	}
	t.Errorf("the stream ended: %v", lines.Err())
}

func TestStream_SendsViewsAndEventsAndEndsWithTheServer(t *testing.T) {
	looks := lookingAt("invoices")
	s, err := New(withPage(figures(), looks))
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	views := 0
	listenTo(t, s.URL()+"/stream", func(kind, data string) bool {
		if kind == "events" {
			return strings.Contains(data, `"word":"expired"`) && strings.Contains(data, `"key":"invoices"`)
		}
		if !strings.Contains(data, `"key":"invoices"`) {
			t.Errorf("a view: %s", data)
		}
		if views++; views == 1 {
			looks.change(func() { looks.heard(redlock.Event{Kind: redlock.EventExpired, Key: "invoices"}) })
		}
		return false
	})
	ended := make(chan struct{})
	began := make(chan struct{}, 1)
	go func() {
		defer close(ended)
		response, err := http.Get(s.URL() + "/stream")
		if err != nil {
			return
		}
		defer response.Body.Close()
		began <- struct{}{}
		_, _ = bufio.NewReader(response.Body).WriteTo(discard{})
	}()
	<-began
	s.Shutdown(t.Context())
	<-ended
	http.DefaultClient.CloseIdleConnections()
}

func TestStream_EndsWhenItsUserIsGone(t *testing.T) {
	list := []access.User{access.Everything("ops", "pw")}
	users, err := access.NewUsers(list)
	if err != nil {
		t.Fatal(err)
	}
	o := withPage(figures(), lookingAt("invoices"))
	o.Login = users
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	defer s.Shutdown(t.Context())
	request, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("ops", "pw")
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	out := bufio.NewReader(response.Body)
	if _, err := out.ReadString('\n'); err != nil { // it has begun
		t.Fatal(err)
	}
	if err := users.Replace(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := out.WriteTo(discard{}); err != nil { // to its end, or until the test's
		t.Errorf("the stream ended with %v", err)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestStream_RefusesMorePagesThanTheLimit(t *testing.T) {
	s := newServer(withPage(figures(), lookingAt()))
	for range maxStreams {
		s.streams <- struct{}{}
	}
	if w := askServer(s, "127.0.0.1:1", "/stream", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "16 pages") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestStream_ReportsWhatIsWrongWithAQuery(t *testing.T) {
	o := withPage(figures(), lookingAt())
	for query, says := range map[string]string{
		"offset=-1": "allowed are 0 to 5000", "offset=5001": "allowed are 0 to 5000", "order=size": "allowed are key, left, held, waiting",
		"db=1": "db 1 is not in use", "db=x": "not a number", "search=" + strings.Repeat("x", 513): "513 bytes, allowed are 0 to 512",
	} {
		if w := ask(t, o, "127.0.0.1:1", "/stream?"+query, ""); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestStream_OneUserLeavesPagesToOthers(t *testing.T) {
	s := newServer(withPage(withUsers(t, figures()), lookingAt()))
	defer s.pollers.close()
	for i := range maxStreamsPerUser + 1 {
		if got, want := s.openPages.enter("scraper"), i < maxStreamsPerUser; got != want {
			t.Fatalf("page %d of one user is served: %t", i+1, got)
		}
	}
	w := askServer(s, "127.0.0.1:5", "/stream", "scraper:sc")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "8 pages of this user are open already") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(s.streams) != 0 {
		t.Error("a page that was refused takes a place")
	}
	if !s.openPages.enter("another") {
		t.Error("another user has no page")
	}
	for range maxStreamsPerUser {
		s.openPages.leave("scraper")
	}
	s.openPages.leave("another")
	if len(s.openPages.byUser) != 0 {
		t.Errorf("pages are left of %v", s.openPages.byUser)
	}
}

// This example guards an object in an object store: the object carries its fence, and a
// write names the version it replaces (If-Match, as S3, GCS and Azure have it).

package examples

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
)

// bucket is as much of an object store as the example needs: GET with an ETag,
// PUT that is refused with 412 unless If-Match names what is there.
type bucket struct {
	mu      sync.Mutex
	body    string
	fence   string
	version int
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	etag := fmt.Sprintf("%q", strconv.Itoa(b.version))
	switch {
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag)
		w.Header().Set("x-amz-meta-fence", b.fence)
		_, _ = io.WriteString(w, b.body)
	case r.Header.Get("If-Match") != etag:
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		body, err := io.ReadAll(r.Body)
		must(err)
		b.body, b.fence = string(body), r.Header.Get("x-amz-meta-fence")
		b.version++
	}
}

// put replaces the object unless a client with a larger fence has written it. The store
// compares versions, not fences, so the fence that was read and the version that is
// replaced must come from one read. between is what happens meanwhile.
func put(url, body string, fence int64, between func()) bool {
	for {
		look, err := http.Get(url)
		must(err)
		look.Body.Close()
		there, _ := strconv.ParseInt(look.Header.Get("x-amz-meta-fence"), 10, 64) // 0: not written yet
		if there > fence {
			return false
		}
		between()
		request, err := http.NewRequest(http.MethodPut, url, strings.NewReader(body))
		must(err)
		request.Header.Set("If-Match", look.Header.Get("ETag"))
		request.Header.Set("x-amz-meta-fence", strconv.FormatInt(fence, 10))
		answer, err := http.DefaultClient.Do(request)
		must(err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusPreconditionFailed {
			return answer.StatusCode == http.StatusOK
		}
		between = func() {} // another client was faster: read again
	}
}

func Example_objectStore() {
	b := &bucket{}
	store := httptest.NewServer(b)
	defer store.Close()
	nothing := func() {}

	stale, fence := lock(sleeper, "report.csv", 1000), int64(0)
	fmt.Println("the sleeper, paused between its look and its write:", put(store.URL, "old", stale, func() {
		fence = lock(other, "report.csv", 30000)
		fmt.Println("the other one:", put(store.URL, "new", fence, nothing))
	}))
	fmt.Println("the sleeper, later:", put(store.URL, "old", stale, nothing))
	fmt.Println("the other one again:", put(store.URL, "newer", fence, nothing), b.body)
	// Output:
	// the other one: true
	// the sleeper, paused between its look and its write: false
	// the sleeper, later: false
	// the other one again: true newer
}

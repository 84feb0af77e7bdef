// This example guards a service of your own: every request that changes something carries
// its fence.

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

// thermostat is a service with one thing to guard. Its largest fence is kept in memory
// like the thing that it guards: a service that keeps its state on disk keeps the fence
// beside it, in the same write.
type thermostat struct {
	mu      sync.Mutex // one for both: the comparison and the change are one step
	highest int64
	degrees string
}

func (s *thermostat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fence, err := strconv.ParseInt(r.Header.Get("Fence"), 10, 64)
	if err != nil { // a request without a fence may come from any client
		http.Error(w, "header Fence is missing or no number", http.StatusPreconditionRequired)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 100))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence < s.highest {
		http.Error(w, fmt.Sprintf("fence %d is below %d: you are not the holder any more", fence, s.highest), http.StatusConflict)
		return
	}
	s.highest, s.degrees = fence, string(body)
}

func set(url, degrees, fence string) string {
	request, err := http.NewRequest(http.MethodPut, url, strings.NewReader(degrees))
	must(err)
	request.Header.Set("Fence", fence)
	answer, err := http.DefaultClient.Do(request)
	must(err)
	answer.Body.Close()
	return http.StatusText(answer.StatusCode)
}

func Example_service() {
	s := &thermostat{}
	service := httptest.NewServer(s)
	defer service.Close()

	stale := strconv.FormatInt(lock(sleeper, "boiler", 1000), 10)
	fence := strconv.FormatInt(lock(other, "boiler", 30000), 10)

	fmt.Println(set(service.URL, "19", fence))
	fmt.Println(set(service.URL, "90", stale))
	fmt.Println(set(service.URL, "90", ""))
	fmt.Println(set(service.URL, "20", fence), s.degrees)
	// Output:
	// OK
	// Conflict
	// Precondition Required
	// OK 20
}

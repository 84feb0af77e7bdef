package admin

import (
	"crypto/sha256"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/inspect"
	"redlockd/redlock"
)

func TestWebsite_EveryFileIsServedUnderARuleThatLetsNothingElseIn(t *testing.T) {
	o := withPage(figures(), lookingAt())
	paths := []string{"/", "/about"}
	entries, err := fs.ReadDir(web, "web")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		paths = append(paths, "/"+e.Name())
	}
	for _, path := range paths {
		w := ask(t, o, "127.0.0.1:1", path, "")
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d, %d bytes, %v", path, w.Code, w.Body.Len(), w.Header())
		}
		for name, has := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		} {
			if !strings.Contains(w.Header().Get(name), has) {
				t.Errorf("%s: header %s is %q", path, name, w.Header().Get(name))
			}
		}
	}
	for _, word := range []string{"frame-ancestors 'none'", "connect-src 'self'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(contentPolicy, word) {
			t.Errorf("the policy lacks %s", word)
		}
	}
	if strings.Contains(contentPolicy, "unsafe") {
		t.Error("the policy lets anything run")
	}
}

// The page works without the internet, and text never becomes markup.
func TestWebsite_NamesNoOtherPlaceAndWritesNoMarkup(t *testing.T) {
	odd := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|style=|onclick=|https?://`)
	entries, err := fs.ReadDir(web, "web")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		text, err := web.ReadFile("web/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range odd.FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), -1) {
			t.Errorf("%s has %s", name, found)
		}
	}
}

func TestWebsite_IsForUsersThatMayRead(t *testing.T) {
	o := withUsers(t, withPage(figures(), lookingAt()))
	for _, path := range []string{"/", "/page.js", "/about", "/state?db=x", "/locks?db=x", "/lock?db=x"} {
		for login, want := range map[string]int{"": 401, "scraper:wrong": 401, "worker:wo": 403} {
			if w := ask(t, o, "10.0.0.1:1", path, login); w.Code != want {
				t.Errorf("%s as %q: %d, want %d", path, login, w.Code, want)
			}
		}
		if w := ask(t, o, "10.0.0.1:1", path, "scraper:sc"); w.Code == 401 || w.Code == 403 {
			t.Errorf("%s as one who may read: %d", path, w.Code)
		}
	}
	protected := withPage(figures(), lookingAt())
	protected.LocalOnly = true
	if w := ask(t, protected, "10.0.0.1:1", "/", ""); w.Code != 403 {
		t.Errorf("protected mode, from another machine: %d", w.Code)
	}
}

// The owner of a name can point it at this machine while one of the owner's pages is
// open in a browser here, and that page could read what is served under the name.
func TestAdmin_WithoutALoginIsServedOnlyUnderNamesThatNoAttackerOwns(t *testing.T) {
	open := withPage(figures(), lookingAt())
	open.Pprof, open.Cmdline = true, []string{"redlockd", "--requirepass", "***"}
	users := withUsers(t, open)
	for _, path := range []string{"/about", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline"} {
		for host, want := range map[string]int{
			"127.0.0.1:9379": 200, "[::1]:9379": 200, "localhost:9379": 200, "10.0.0.7": 200, "locks:9379": 200,
			"evil.example:9379": 403, "127.0.0.1.evil.example": 403, "": 403,
		} {
			for _, o := range []Options{open, users} {
				r := httptest.NewRequest("GET", path, nil)
				r.Host, r.RemoteAddr = host, "127.0.0.1:1"
				r.SetBasicAuth("operator", "op")
				w := httptest.NewRecorder()
				newServer(o).routes().ServeHTTP(w, r)
				if o.Login.NeedsLogin() {
					want = 200
				}
				if w.Code != want {
					t.Errorf("%s under host %q: %d, want %d", path, host, w.Code, want)
				}
				if path == "/debug/pprof/cmdline" && want == 200 && w.Body.String() != "redlockd\x00--requirepass\x00***" {
					t.Errorf("cmdline is %q", w.Body)
				}
			}
		}
	}
}

// apiOptions runs a daemon's commands over simulated locks.
func apiOptions(t *testing.T, looks commands.Inspect) Options {
	t.Helper()
	digest := func(password string) [][sha256.Size]byte {
		return [][sha256.Size]byte{sha256.Sum256([]byte(password))}
	}
	users, err := access.NewUsers([]access.User{
		access.Everything("operator", "op"),
		{Name: "part", Passwords: digest("pa"), Keys: []string{"mine:*"}, Commands: []string{"read", "force"}},
		{Name: "reader", Passwords: digest("re"), Keys: []string{"*"}, Commands: []string{"read", "lock", "admin"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	table := commands.NewTable(commands.Deps{Users: users, Inspect: looks}, inspect.Rows)
	o := withPage(figures(), lookingAt())
	o.Login, o.Commands = users, table
	return o
}

// forcible is a lock that can be taken away.
type forcible struct {
	*fakeReader
	forced []redlock.ForceRequest
}

func (f *forcible) Force(r redlock.ForceRequest, done func(bool, error)) {
	f.forced = append(f.forced, r)
	done(true, nil)
}

// pressed is a request as a browser sends it when the button is pressed.
func pressed(s *Server, login, query string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://locks:9379/force?"+query, nil)
	r.RemoteAddr = "10.0.0.1:55"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://locks:9379")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	name, password, _ := strings.Cut(login, ":")
	r.SetBasicAuth(name, password)
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, r)
	return w
}

func keyQuery(key redlock.Key) string { return "db=0&id=" + encodeKey(key) }

func TestForce_IsDoneByTheCommandOfThePortForAuthorizedUsers(t *testing.T) {
	looks := &forcible{fakeReader: lookingAt()}
	s := newServer(apiOptions(t, looks))
	for _, c := range []struct {
		login, query string
		want         int
	}{
		{"reader:re", keyQuery("mine:1"), 403}, {"part:pa", keyQuery("theirs"), 403}, {"part:wrong", keyQuery("mine:1"), 401},
		{"operator:op", "db=9&id=aw", 400}, {"operator:op", "db=x&id=aw", 400}, {"operator:op", "db=0&id=!", 400}, {"operator:op", keyQuery("redlockd:seal"), 400},
		{"operator:op", keyQuery(redlock.Key(strings.Repeat("a", maxKey+1))), 400}, {"operator:op", "", 400},
	} {
		if w := pressed(s, c.login, c.query); w.Code != c.want || len(looks.forced) > 0 {
			t.Errorf("%s, %.40s: %d, want %d: %s; forced %v", c.login, c.query, w.Code, c.want, w.Body, looks.forced)
		}
	}
	if w := pressed(s, "part:pa", keyQuery("mine:\xff<b>")); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `"1"` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	want := redlock.ForceRequest{DB: 0, Key: "mine:\xff<b>", By: redlock.Requester{Addr: "10.0.0.1:55", Host: "10.0.0.1", Name: "page", User: "part"}}
	if len(looks.forced) != 1 || looks.forced[0] != want {
		t.Errorf("forced %+v, want %+v", looks.forced, want)
	}
}

func TestForce_IsRefusedToOtherSites(t *testing.T) {
	looks := &forcible{fakeReader: lookingAt()}
	s := newServer(apiOptions(t, looks))
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "http://evil.example"},
		{"Sec-Fetch-Site", "", "Origin", "null"}, {"Sec-Fetch-Site", "", "Origin", "http://locks:80"},
		{"Content-Type", "text/plain"}, {"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Type", ""},
	} {
		if w := pressed(s, "operator:op", keyQuery("k"), headers...); w.Code != 403 && w.Code != http.StatusUnsupportedMediaType || len(looks.forced) > 0 {
			t.Errorf("%q: %d %s", headers, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest("GET", "http://locks:9379/force?db=0&id=aw", nil)
	w := httptest.NewRecorder()
	if s.routes().ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	r = httptest.NewRequest("GET", "http://locks:9379/state", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Mode", "no-cors")
	w = httptest.NewRecorder()
	if s.routes().ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("the state as a part of another site's page: %d", w.Code)
	}
}

func TestLock_IsShownAsDINFODoes(t *testing.T) {
	s := newServer(apiOptions(t, &forcible{fakeReader: lookingAt("mine:1")}))
	w := askServer(s, "10.0.0.1:1", "/lock?db=0&id="+encodeKey("mine:1"), "part:pa")
	for _, has := range []string{`"state":"held"`, `"fence":"1700000000000000"`, `"token":"`} {
		if w.Code != 200 || !strings.Contains(w.Body.String(), has) || strings.Contains(w.Body.String(), "token-mine") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := askServer(s, "10.0.0.1:1", "/lock?db=0&id="+encodeKey("theirs"), "part:pa"); w.Code != 403 {
		t.Errorf("another's key: %d %s", w.Code, w.Body)
	}
}

package admin

// desk.go answers what the page asks for beside its stream: who am I, what do
// the masters say of one key, and the one thing that it can do. Both go to the
// commands of the port, DINFO and DFORCE, so that categories, key patterns, rates
// and the log are the port's.

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"redlockd/commands"
	"redlockd/redlock"
)

const (
	// mostAsked is how many commands of pages run at once.
	mostAsked = 8
	// longestWish is room for a key of 512 bytes and its database.
	longestWish = 2048
)

// Desk answers commands, see commands.Table.
type Desk interface{ Dispatch(*commands.Call) }

var _ Desk = (*commands.Table)(nil)

// about is what the page needs to know once.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, visitor commands.Visitor) {
	give(w, http.StatusOK, map[string]any{
		"version": s.options.Sources.Version, "user": visitor.Name(), "force": visitor.May(commands.CategoryForce), "databases": s.databases(),
	})
}

// lock shows one key as DINFO does.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, visitor commands.Visitor) {
	key, err := identified(r.URL.Query().Get("id"))
	db, mistake := strconv.Atoi(r.URL.Query().Get("db"))
	if err := errors.Join(err, mistake); err != nil {
		answer(w, http.StatusBadRequest, "a lock is named by db, a number, and id, its key in base64url: "+err.Error())
		return
	}
	s.command(w, r, visitor, db, "DINFO", key)
}

// wish is what force is asked for.
type wish struct {
	DB int    `json:"db"`
	ID string `json:"id"`
}

// force releases a lock whoever holds it. Other pages' scripts and forms cannot
// ask for it: only JSON is taken, which they may not send here.
func (s *Server) force(w http.ResponseWriter, r *http.Request, visitor commands.Visitor) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		answer(w, http.StatusUnsupportedMediaType, "only application/json is taken")
		return
	}
	var asked wish
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestWish)).Decode(&asked)
	key, mistake := identified(asked.ID)
	if err := errors.Join(err, mistake); err != nil {
		answer(w, http.StatusBadRequest, `a lock is named by {"db": number, "id": its key in base64url}: `+err.Error())
		return
	}
	s.command(w, r, visitor, asked.DB, "DFORCE", key)
}

// reply is the sink of one command.
type reply chan commands.Reply

func (c reply) Deliver(r commands.Reply)       { c <- r }
func (c reply) DeliverLate(late commands.Late) { c <- late.Reply() }
func (c reply) wait(ctx context.Context) (r commands.Reply, ok bool) {
	select {
	case r = <-c:
		return r, true
	case <-ctx.Done():
		return r, false
	}
}

// command has the port's command done for a visitor.
func (s *Server) command(w http.ResponseWriter, r *http.Request, visitor commands.Visitor, db int, word string, key redlock.Key) {
	if !slices.Contains(s.databases(), db) {
		answer(w, http.StatusBadRequest, "db "+strconv.Itoa(db)+" is not in use by this daemon")
		return
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-r.Context().Done():
		return
	}
	host, _ := origin(r.RemoteAddr)
	client := &commands.Client{Addr: r.RemoteAddr, Host: host, Name: "page", User: visitor.Name(), DB: db, Proto: 3}
	sink := make(reply, 1) // the one answer must never wait
	s.options.Desk.Dispatch(&commands.Call{Args: []string{word, string(key)}, Client: client, Batch: new(redlock.Batch), Sink: sink})
	said, ok := sink.wait(r.Context())
	switch {
	case !ok: // nobody is there any more
	case said.Kind == commands.KindError:
		answer(w, statusOf(said.Text), said.Text)
	default:
		give(w, http.StatusOK, plain(said))
	}
}

// statusOf is the status for the code of an error.
func statusOf(text string) int {
	code, _, _ := strings.Cut(text, " ")
	switch code {
	case "NOPERM":
		return http.StatusForbidden
	case "NOAUTH":
		return http.StatusUnauthorized
	case "TRYLATER":
		return http.StatusTooManyRequests
	case "NOQUORUM", "SHUTDOWN":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// plain is a reply as JSON has it. Integers are texts: a script's numbers are not
// exact above 2⁵³.
func plain(r commands.Reply) any {
	switch r.Kind {
	case commands.KindNil, commands.KindNilArray:
		return nil
	case commands.KindInt:
		return strconv.FormatInt(r.Int, 10)
	case commands.KindSimple, commands.KindBulk:
		return shown(r.Text)
	case commands.KindMap:
		all := make(map[string]any, len(r.Items)/2)
		for i := 0; i+1 < len(r.Items); i += 2 {
			all[r.Items[i].Text] = plain(r.Items[i+1])
		}
		return all
	}
	all := make([]any, len(r.Items))
	for i := range r.Items {
		all[i] = plain(r.Items[i])
	}
	return all
}

func give(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // whoever has gone needs no answer
}

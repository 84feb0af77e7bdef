package admin

// api.go serves the page's requests beside its stream: the user and the daemon, the state
// of one key on the masters, and the forced release. The last two run the port's commands
// DINFO and DFORCE, so that categories, key patterns, rates and the log are the port's.

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
	// maxCommands is how many commands of pages run at once.
	mostAsked = 8
	// maxForceBody has space for a key of 512 bytes and its database.
	longestWish = 2048
)

// CallDispatcher runs commands, see commands.Table.
type Desk interface{ Dispatch(*commands.Call) }

var _ Desk = (*commands.Table)(nil)

// about serves what the page needs once.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, visitor commands.Visitor) {
	give(w, http.StatusOK, map[string]any{
		"version": s.options.Sources.Version, "user": visitor.Name(), "force": visitor.May(commands.CategoryForce), "databases": s.databases(),
	})
}

// lock shows one key as DINFO does.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, visitor commands.Visitor) {
	key, err := identified(r.URL.Query().Get("id"))
	db, dbErr := strconv.Atoi(r.URL.Query().Get("db"))
	if err := errors.Join(err, dbErr); err != nil {
		answer(w, http.StatusBadRequest, "a lock is named by db, a number, and id, its key in base64url: "+err.Error())
		return
	}
	s.command(w, r, visitor, db, "DINFO", key)
}

// forceRequest is the body of a forced release.
type wish struct {
	DB int    `json:"db"`
	ID string `json:"id"`
}

// force releases a lock regardless of its holder. Other pages' scripts and forms cannot
// do so: only JSON is accepted, which they may not send here.
func (s *Server) force(w http.ResponseWriter, r *http.Request, visitor commands.Visitor) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		answer(w, http.StatusUnsupportedMediaType, "only application/json is accepted")
		return
	}
	var body wish
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestWish)).Decode(&body)
	key, keyErr := identified(body.ID)
	if err := errors.Join(err, keyErr); err != nil {
		answer(w, http.StatusBadRequest, `a lock is named by {"db": number, "id": its key in base64url}: `+err.Error())
		return
	}
	s.command(w, r, visitor, body.DB, "DFORCE", key)
}

// replyChan receives the reply of one command.
type reply chan commands.Reply

func (c reply) Deliver(r commands.Reply)           { c <- r }
func (c reply) DeliverLate(deferred commands.Late) { c <- deferred.Reply() }
func (c reply) wait(ctx context.Context) (r commands.Reply, ok bool) {
	select {
	case r = <-c:
		return r, true
	case <-ctx.Done():
		return r, false
	}
}

// command runs the port's command for a user.
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
	sink := make(reply, 1) // the one reply must never block
	s.options.Desk.Dispatch(&commands.Call{Args: []string{word, string(key)}, Client: client, Batch: new(redlock.Batch), Sink: sink})
	result, ok := sink.wait(r.Context())
	switch {
	case !ok: // the client has gone
	case result.Kind == commands.KindError:
		answer(w, statusOf(result.Text), result.Text)
	default:
		give(w, http.StatusOK, plain(result))
	}
}

// statusOf returns the HTTP status for the code of an error.
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

// jsonValue converts a reply for JSON. Integers are texts: a script's numbers are not
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
	_, _ = w.Write(text) // a client that has gone needs no reply
}

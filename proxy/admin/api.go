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
	"redlockd/commands/access"
	"redlockd/redlock"
)

const (
	// maxCommands is how many commands of pages run at once.
	maxCommands = 8
	// maxForceBody has space for a key of 512 bytes and its database.
	maxForceBody = 2048
)

// CallDispatcher runs commands, see commands.Table.
type CallDispatcher interface{ Dispatch(*commands.Call) }

var _ CallDispatcher = (*commands.Table)(nil)

// about serves what the page needs once.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, visitor access.HTTPUser) {
	writeJSON(w, http.StatusOK, map[string]any{
		"version": s.options.Sources.Version, "user": visitor.Name(), "force": visitor.May(access.CategoryForce), "databases": s.databases(),
	})
}

// lock shows one key as DINFO does.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
	key, err := decodeKey(r.URL.Query().Get("id"))
	db, dbErr := strconv.Atoi(r.URL.Query().Get("db"))
	if err := errors.Join(err, dbErr); err != nil {
		writeText(w, http.StatusBadRequest, "a lock is named by db, a number, and id, its key in base64url: "+err.Error())
		return
	}
	s.command(w, r, visitor, db, "DINFO", key)
}

// forceRequest is the body of a forced release.
type forceRequest struct {
	DB int    `json:"db"`
	ID string `json:"id"`
}

// force releases a lock regardless of its holder. Other pages' scripts and forms cannot
// do so: only JSON is accepted, which they may not send here.
func (s *Server) force(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		writeText(w, http.StatusUnsupportedMediaType, "only application/json is accepted")
		return
	}
	var body forceRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxForceBody)).Decode(&body)
	key, keyErr := decodeKey(body.ID)
	if err := errors.Join(err, keyErr); err != nil {
		writeText(w, http.StatusBadRequest, `a lock is named by {"db": number, "id": its key in base64url}: `+err.Error())
		return
	}
	s.command(w, r, visitor, body.DB, "DFORCE", key)
}

// replyChan receives the reply of one command.
type replyChan chan commands.Reply

func (c replyChan) Complete(r commands.Reply)                        { c <- r }
func (c replyChan) CompleteDeferred(deferred commands.DeferredReply) { c <- deferred.Reply() }
func (c replyChan) wait(ctx context.Context) (r commands.Reply, ok bool) {
	select {
	case r = <-c:
		return r, true
	case <-ctx.Done():
		return r, false
	}
}

// command runs the port's command for a user.
func (s *Server) command(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser, db int, word string, key redlock.Key) {
	if !slices.Contains(s.databases(), db) {
		writeText(w, http.StatusBadRequest, "db "+strconv.Itoa(db)+" is not in use by this daemon")
		return
	}
	select {
	case s.commandSlots <- struct{}{}:
		defer func() { <-s.commandSlots }()
	case <-r.Context().Done():
		return
	}
	host, _ := origin(r.RemoteAddr)
	client := &commands.Client{Addr: r.RemoteAddr, Host: host, Name: "page", User: visitor.Name(), DB: db, Proto: 3}
	sink := make(replyChan, 1) // the one reply must never block
	s.options.Commands.Dispatch(&commands.Call{Args: []string{word, string(key)}, Client: client, Batch: new(redlock.Batch), Completer: sink})
	result, ok := sink.wait(r.Context())
	switch {
	case !ok: // the client has gone
	case result.Kind == commands.KindError:
		writeText(w, statusOf(result.Text), result.Text)
	default:
		writeJSON(w, http.StatusOK, jsonValue(result))
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
func jsonValue(r commands.Reply) any {
	switch r.Kind {
	case commands.KindNil, commands.KindNilArray:
		return nil
	case commands.KindInt:
		return strconv.FormatInt(r.Int, 10)
	case commands.KindSimple, commands.KindBulk:
		return printable(r.Text)
	case commands.KindMap:
		all := make(map[string]any, len(r.Items)/2)
		for i := 0; i+1 < len(r.Items); i += 2 {
			all[r.Items[i].Text] = jsonValue(r.Items[i+1])
		}
		return all
	}
	all := make([]any, len(r.Items))
	for i := range r.Items {
		all[i] = jsonValue(r.Items[i])
	}
	return all
}

func writeJSON(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		writeText(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone needs no reply
}

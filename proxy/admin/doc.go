// Package admin is the admin endpoint: a live page, metrics, health and profiles over
// HTTP. It takes no decision about locks and serves no lock clients.
//
// Access: /healthz and /readyz answer everybody who can reach the address, because probes
// have no passwords; they show only the readiness, how many masters vote and that
// bootstrap is set. Wherever the port needs a login, HTTP's Basic authentication applies:
// /metrics and the page at / need the category read, /debug/pprof needs admin. The page
// shows the keys that the user may use, and releases locks by force for users with the
// category force. Clients of this machine are not exempt, since behind a proxy every
// client is one. Where the port needs no login and protected mode is on, all of this
// serves this machine alone, as the port does.
//
// Files in reading order: admin.go and routes.go (server, access), connlimiter.go;
// metrics.go, latency.go (/metrics); website.go, api.go, locks.go (the page); watch.go,
// view.go (its data; package diagnosis has the verdict).
package admin

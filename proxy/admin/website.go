package admin

// website.go serves the files of the page and the headers that restrict it in a browser.
// Everything is in the binary; the page requests nothing from other servers.

import (
	"bytes"
	"cmp"
	"embed"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"redlockd/commands/access"
	"redlockd/commands/diagnosis"
)

//go:embed web
var web embed.FS

// contentPolicy lets the page run its own script and style and connect to this endpoint
// alone; no page may frame it, and text can become markup nowhere (Trusted Types).
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// iconColours has the colours of the lock in icon.svg, by the level of the verdict; the file has that of bad.
var iconColours = map[string]string{diagnosis.LevelGood: "#1e8449", diagnosis.LevelWarn: "#b9770e", diagnosis.LevelBad: "#c0392b"}

// file serves a file of the page, index.html at "/".
func file(w http.ResponseWriter, r *http.Request, _ access.HTTPUser) {
	name := cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), "index.html")
	text, _ := web.ReadFile("web/" + name) // only its files are routed here
	if colour := iconColours[r.URL.Query().Get("level")]; colour != "" {
		text = bytes.ReplaceAll(text, []byte(iconColours[diagnosis.LevelBad]), []byte(colour))
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "no-cache") // another version may be started at any time
	_, _ = w.Write(text)                        // a client that has gone needs no reply
}

// protected adds the page's policy to everything that belongs to it.
func (s *Server) protected(inner http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		if err := crossOrigin.Check(r); err != nil || embedded(r) {
			writeText(w, http.StatusForbidden, "this comes from another site's page")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// embedded reports whether another site's page requests something as a part of itself.
// That page could not read it, but it would count as an open page.
func embedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// ownName reports whether no attacker can own a host name: a browser takes a page for the
// same site as long as the name is the same, even when it resolves to another address.
func ownName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || host != "" && !strings.Contains(host, ".")
}

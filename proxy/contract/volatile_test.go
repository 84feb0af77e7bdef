package contract

import (
	"regexp"
	"strconv"
	"strings"
)

// volatileKeys are keys of maps whose values differ between runs.
var volatileKeys = map[string]bool{
	"since_ms": true, "clock_us": true, "rtt_p50_us": true, "rtt_p99_us": true, "id": true,
	"granted": true, "refused": true, "silent": true, "uncounted": true,
	"client": true, "since": true, "waited-ms": true, "left-ms": true,
	"in_flight": true, "queued": true, "owed": true, "pending_releases": true,
}

// largest is what a number may be that is shown as it is. Transcripts use leases of
// a day, so that what is left of one is above, however slow the machine is.
const largest = 10_000_000

var (
	tokenText = regexp.MustCompile(`^(owner-of-.#)?[A-Za-z0-9_-]{27}(\.\d+)*$`)
	idText    = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{8})$`)
	variables = []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<address>"},
		{regexp.MustCompile(`\b(id|laddr|age|idle|qbuf|tot-mem)=\d+`), "$1=<n>"},
		{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<sha1>"},
		{regexp.MustCompile(`\d{12,}`), "<number>"},
		{regexp.MustCompile(`over in [\w.]+\)`), "over in <time>)"}, // before the next, which leaves the hours
		{regexp.MustCompile(`\d+\.\d+s\b|\b\d+ ms left`), "<time>"},
		{regexp.MustCompile(`first bring back b=127[^;]*`), "first bring back <masters>"},
		{regexp.MustCompile(`( masters answered, \d needed): [^;]*`), "$1: <masters>"},
		{regexp.MustCompile(`(read|write) tcp <address>->`), "$1 tcp "},
	}
)

// settle replaces what differs between runs; key is that of the value in its map.
func (r reply) settle(key string) reply {
	switch {
	case volatileKeys[key] && r.kind == ':', (key == "run_id" || key == "daemon" || key == "rtt_counts") && r.kind == '$':
		return reply{kind: '+', text: "<" + key + ">"}
	case r.kind == ':':
		if n, _ := strconv.ParseInt(r.text, 10, 64); n > largest {
			r.text = "<number>"
		}
	case r.kind == '$' && tokenText.MatchString(r.text):
		r.text = "<token>"
	case r.kind == '$' && idText.MatchString(r.text):
		r.text = "<hash>"
	case r.kind == '$' || r.kind == '-' || r.kind == '+':
		r.text = settleText(r.text)
	}
	items := make([]reply, len(r.items))
	for i, item := range r.items {
		key := ""
		if i%2 == 1 && (r.items[i-1].kind == '$' || r.items[i-1].kind == '+') {
			key = r.items[i-1].text // in RESP2 a map is a list
		}
		items[i] = item.settle(key)
	}
	r.items = items
	return r
}

func settleText(text string) string {
	for _, v := range variables {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return text
}

// shape keeps the types of a value.
func (r reply) shape() reply {
	if text := map[byte]string{'$': "<string>", ':': "<integer>"}[r.kind]; text != "" {
		return reply{kind: '+', text: text}
	}
	for i := range r.items {
		r.items[i] = r.items[i].shape()
	}
	return r
}

var (
	infoValue = regexp.MustCompile(`(?m):[^\r\n]*`)
	infoField = regexp.MustCompile(`=[^,\r\n]*`)
)

// fields keeps the names of INFO.
func (r reply) fields() reply {
	lines := strings.Split(r.text, "\n")
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		if strings.Contains(value, "=") {
			lines[i] = name + ":" + infoField.ReplaceAllString(strings.TrimRight(value, "\r"), "=")
			continue
		}
		lines[i] = infoValue.ReplaceAllString(line, ":")
	}
	r.text = strings.Join(lines, "\n")
	return r
}

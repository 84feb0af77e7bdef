// fields are the answer of a command that shows something, by name, and how people read it.

package cli

import (
	"strconv"
	"strings"
	"time"

	"redlockd/commands/diagnosis"
)

// fields have no value, "" or 0 for what the daemon did not send.
type fields map[string]any

// newFields takes a map in RESP2.
func newFields(reply any) fields {
	items, _ := reply.([]any)
	f := make(fields, len(items)/2)
	for i := 0; i+1 < len(items); i += 2 {
		if name, ok := items[i].(string); ok {
			f[name] = items[i+1]
		}
	}
	return f
}

// infoFields takes the text of INFO.
func infoFields(reply any) fields {
	text, _ := reply.(string)
	f := fields{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		f[name] = value
	}
	return f
}

func (f fields) text(name string) string {
	switch value := f[name].(type) {
	case string:
		return value
	case int64:
		return strconv.FormatInt(value, 10)
	}
	return ""
}

func (f fields) list(name string) []any {
	list, _ := f[name].([]any)
	return list
}

func (f fields) sum(names ...string) (sum int64) {
	for _, name := range names {
		n, _ := strconv.ParseInt(f.text(name), 10, 64) // 0 for what is no number
		sum += n
	}
	return sum
}

func (f fields) milli(name string) time.Duration {
	return time.Duration(f.sum(name)) * time.Millisecond
}

// micros is a short time for people.
func (f fields) micros(name string) string {
	d := time.Duration(f.sum(name)) * time.Microsecond
	switch {
	case f[name] == nil:
		return "–"
	case d.Abs() >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	}
	return d.String()
}

// holders describes the holders in a reply to DINFO, "" for none.
func (f fields) holders() string {
	list := f.list("holders")
	if len(list) == 0 {
		return ""
	}
	first := newFields(list[0])
	h := diagnosis.Holder{Meta: first.text("meta"), Name: first.text("name"), Client: first.text("client"), Daemon: first.text("daemon"), Token: first.text("token")}
	return h.Text(int(f.sum("count")))
}

// age is a time for people: with tenths of a second below ten seconds.
func age(d time.Duration) string {
	if d = max(d, 0); d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// number has one digit behind the point below ten.
func number(n float64) string {
	if n > 0 && n < 9.95 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

package checker

// The form in which a history is stored, so that a failing run can be inspected and
// checked again: JSON lines, one event a line, times in nanoseconds.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// historyLine is an event as it is written. Keys and tokens are binary safe and JSON
// strings are not, so what is not UTF-8 goes into the …Raw field as base64.
type historyLine struct {
	Client   int           `json:"client"`
	Op       OpKind        `json:"op"`
	Key      string        `json:"key,omitempty"`
	KeyRaw   []byte        `json:"key_raw,omitempty"`
	Token    string        `json:"token,omitempty"`
	TokenRaw []byte        `json:"token_raw,omitempty"`
	Invoke   time.Duration `json:"invoke"`
	Complete time.Duration `json:"complete"`
	Outcome  Outcome       `json:"outcome"`
	Validity time.Duration `json:"validity,omitempty"`
	Shared   bool          `json:"shared,omitempty"`
	Limit    int           `json:"limit,omitempty"`
	Fence    int64         `json:"fence,omitempty"`
	Released bool          `json:"released,omitempty"`
}

// maxLine bounds a line of a dump: keys and tokens have at most 512 bytes, so
// 64 KiB is never reached by a dump that this package wrote.
const maxLine = 64 << 10

// Dump writes the history, one event a line.
func (h History) Dump(w io.Writer) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	for i := range h {
		if err := encoder.Encode(toLine(&h[i])); err != nil {
			return fmt.Errorf("checker: writing event %d of %d: %w", i, len(h), err)
		}
	}
	return out.Flush()
}

// Load reads what Dump wrote. An error names the line; unknown fields
// are refused, because a misspelt one would silently change the result.
func Load(r io.Reader) (History, error) {
	var h History
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	number := 0
	for scanner.Scan() {
		number++
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		decoder.DisallowUnknownFields()
		var l historyLine
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("checker: line %d is no event: %w", number, err)
		}
		if decoder.More() {
			return nil, fmt.Errorf("checker: line %d has more than one event; write one a line", number)
		}
		h = append(h, l.event())
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("checker: after line %d (lines have at most %d bytes): %w", number, maxLine, err)
	}
	return h, nil
}

func toLine(e *CallRecord) historyLine {
	l := historyLine{
		Client: e.Client, Op: e.Op, Invoke: e.Invoke, Complete: e.Complete,
		Outcome: e.Outcome, Validity: e.Validity, Shared: e.Shared, Limit: e.Limit, Fence: e.Fence, Released: e.Released,
	}
	l.Key, l.KeyRaw = split(e.Key)
	l.Token, l.TokenRaw = split(e.Token)
	return l
}

func (l *historyLine) event() CallRecord {
	return CallRecord{
		Client: l.Client, Op: l.Op, Key: l.Key + string(l.KeyRaw), Token: l.Token + string(l.TokenRaw),
		Invoke: l.Invoke, Complete: l.Complete, Outcome: l.Outcome,
		Validity: l.Validity, Shared: l.Shared, Limit: l.Limit, Fence: l.Fence, Released: l.Released,
	}
}

func split(s string) (text string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

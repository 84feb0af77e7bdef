// The transcripts of recorded libraries, and their syntax.

package main

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A transcript has one exchange after another:
//
//	# anything
//	library 3.2.0              the version it was recorded with
//	step connect               begins a step
//	> "*1\r\n$4\r\nPING\r\n"   sent as one piece, in Go's quotes
//	< "+PONG\r\n"              must be the very next bytes
//
// In what is expected, {int} is digits, {line} anything up to the line's end,
// and {token} a token of the daemon, which a later line may send as {token}.
//
// Those of lock libraries have besides
//
//	script free "return 1"     a script of like behaviour for one of the library's
//	on second                  what follows is another connection's
//	! EVALSHA {sha free} 0     sent as a list of words, the form that all clients use
//	until "+OK\r\n"            the last words again until this comes
//	wait kill                  as a program says it
//
// where {sha NAME} is the script's SHA1 and {text NAME} the script, a word each, and {space} is
// a space within a word.
type exchange struct {
	number     int // of its line
	step       string
	connection string
	send       string
	expect     string
	again      bool   // send once more if something else comes
	wait       string // for the driver
}

// transcript is what a file says.
type transcript struct {
	version   string
	exchanges []exchange
}

// readTranscript reads a file of recorded/.
func readTranscript(path string) (*transcript, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := transcriptReader{scripts: make(map[string]string)}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.next.number = number
		if err := r.read(word, rest); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	return &r.transcript, nil
}

// transcriptReader keeps what later lines refer to.
type transcriptReader struct {
	transcript
	next    exchange // begins like this
	last    string   // words that were sent
	scripts map[string]string
}

func (r *transcriptReader) read(word, rest string) (err error) {
	e := r.next
	switch word {
	case "", "#":
		return nil
	case "library":
		r.version = rest
		return nil
	case "step":
		r.next.step = rest
		return nil
	case "on":
		r.next.connection = rest
		return nil
	case "script":
		name, quoted, _ := strings.Cut(rest, " ")
		r.scripts[name], err = strconv.Unquote(quoted)
		return err
	case "wait":
		e.wait = rest
	case ">":
		e.send, err = strconv.Unquote(rest)
	case "<":
		e.expect, err = strconv.Unquote(rest)
	case "!":
		e.send, err = r.command(rest)
		r.last = e.send
	case "until":
		if r.last == "" {
			return errors.New("until follows no words")
		}
		e.send, e.again = r.last, true
		e.expect, err = strconv.Unquote(rest)
	default:
		return fmt.Errorf("%q is no line of a transcript", word)
	}
	r.exchanges = append(r.exchanges, e)
	return err
}

// command is a list of words as clients send it.
func (r *transcriptReader) command(text string) (string, error) {
	for name, script := range r.scripts {
		sum := sha1.Sum([]byte(script))
		text = strings.ReplaceAll(text, "{sha "+name+"}", hex.EncodeToString(sum[:]))
		text = strings.ReplaceAll(text, "{text "+name+"}", "{text}"+name)
	}
	words := strings.Fields(text)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		word = strings.ReplaceAll(word, "{space}", " ")
		if name, isScript := strings.CutPrefix(word, "{text}"); isScript {
			word = r.scripts[name]
		} else if strings.ContainsAny(word, "{}") {
			return "", fmt.Errorf("%s is no script of this transcript", word)
		}
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String(), nil
}

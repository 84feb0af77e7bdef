package proxy

// hostile_test.go is the table of what the port may be sent: bytes in, exact
// bytes out, and whether the connection is kept. It also feeds the fuzzer.

import (
	"strings"
	"testing"
)

type hostile struct {
	name   string
	input  string
	output string
	closed bool
}

func protocolError(text string) string { return "-ERR Protocol error: " + text + "\r\n" }

// hostiles lists every input that the framing decides about.
func hostiles() []hostile {
	const ping = "*1\r\n$4\r\nPING\r\n"
	long := strings.Repeat("9", 64<<10)
	letters := strings.Repeat("x", 64<<10)
	var rows []hostile
	kept := func(name, output string, inputs ...string) {
		for _, input := range inputs {
			rows = append(rows, hostile{name, input, output, false})
		}
	}
	closed := func(name, fault string, inputs ...string) {
		for _, input := range inputs {
			rows = append(rows, hostile{name, input, protocolError(fault), true})
		}
	}
	kept("empty lines are ignored", "", "\r\n", "\n", strings.Repeat("\r\n", 1000), strings.Repeat("\n", 5000), "  \t \r\n", "\v\f\r\n")
	kept("empty arrays are ignored", "", "*0\r\n", "*-1\r\n", "*-10\r\n", "*-9223372036854775808\r\n")

	count := "invalid multibulk length"
	closed("no count", count, "*\r\n", "*-\r\n")
	closed("counts beyond reason", count, "*3000000000\r\n", "*2147483648\r\n", "*9223372036854775808\r\n",
		"*2147483647\r\n", "*300000000\r\n", "*1025\r\n", "*9223372036854775807\r\n", "*-9223372036854775809\r\n")
	closed("a count that wraps to 1", count, "*18446744073709551617\r\n$4\r\nPING\r\n")
	closed("counts that are no strict numbers", count, "*+1\r\n", "* 1\r\n", "*01\r\n", "*1x\r\n", "*-0\r\n", "*00\r\n", "*1 \r\n", "*0x1\r\n")
	closed("line feeds alone end no count", count, "*1\n$4\nPING\n\r\n")
	closed("a CR alone ends no count", count, "*1\rX$4\r\nPING\r\n")

	closed("a word without its length", "expected '$', got 'f'", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "*1\r\nfoo\r\n")
	closed("an array in an array", "expected '$', got '*'", "*1\r\n*1\r\n$4\r\nPING\r\n")
	closed("a CR as type byte does not split the reply", "expected '$', got ' '", "*1\r\n\rfoo", "*1\r\n\n")
	closed("an escape as type byte is masked", "expected '$', got '?'", "*1\r\n\x1b[2J", "*1\r\n\x00", "*1\r\n\x9b")

	size := "invalid bulk length"
	closed("negative sizes", size, "*1\r\n$-10\r\n", "*1\r\n$-1\r\n", "*1\r\n$-7\r\n")
	closed("sizes beyond the limit", size, "*1\r\n$2000000000\r\n", "*1\r\n$536870913\r\n", "*1\r\n$65537\r\n")
	closed("the 27 bytes that kill an unguarded redcon", size, "*1\r\n$9223372036854775807\r\n")
	closed("a size that wraps to 4", size, "*1\r\n$18446744073709551620\r\nPING\r\n")
	closed("sizes that are no strict numbers", size, "*1\r\n$blabla\r\n", "*1\r\n$\r\n", "*1\r\n$04\r\nPING\r\n",
		"*1\r\n$-0\r\n", "*1\r\n$ 4\r\nPING\r\n", "*1\r\n$4.0\r\nPING\r\n", "*1\r\n$0x4\r\nPING\r\n", "*1\r\n$4\rXPING\r\n")
	closed("a word that is longer than announced", size, "*1\r\n$4\r\nPINGxx", "*1\r\n$4\r\nPING\rx", "*1\r\n$0\r\nx")

	closed("an endless size", "too big bulk count string", "*1\r\n$"+long)
	closed("an endless count", "too big mbulk count string", "*\x00"+letters, "*"+long)
	closed("an endless line", "too big inline request", "\x00"+letters, "$\x00"+letters, letters+"x",
		strings.Repeat("x", 70_000)+"\r\n", "PI\x00NG\r\n"+letters)
	closed("a hello of TLS", "TLS was sent where a command is expected", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03PING\r\n")
	closed("words that together exceed a command",
		"too big command, at most 262144 bytes are allowed",
		"*5\r\n"+strings.Repeat("$60000\r\n"+strings.Repeat("a", 60_000)+"\r\n", 4)+"$60000\r\n")
	closed("a line of too many words", count, strings.Repeat("a ", 1025)+"\r\n")

	quotes := "unbalanced quotes in request"
	closed("unbalanced quotes", quotes, `set """test-key""" v`+"\r\n", `SET a"b c`+"\r\n", `PING "abc`+"\r\n", "PING 'abc\r\n", `PING "a"b`+"\r\n", `PING "abc\`+"\r\n")
	kept("quoted bytes", "$2\r\n\xff\x00\r\n", `PING "\xff\x00"`+"\r\n")
	kept("escapes", "$6\r\n\n\r\t\b\ag\r\n", `PING "\n\r\t\b\a\g"`+"\n")
	kept("single quotes", "$7\r\nit's \\n\r\n", `PING 'it\'s \n'`+"\r\n")
	kept("an empty quoted word", "$0\r\n\r\n", `PING ""`+"\r\n", "PING ''\n")
	kept("tabs separate", "$1\r\nx\r\n", "PING\tx\r\n", "  PING \t x \r\n")
	kept("a vertical tab does not", "-ERR unknown command 'PING?x', with args beginning with: \r\n", "PING\vx\r\n")
	kept("lines and arrays mix", "+PONG\r\n+PONG\r\n+PONG\r\n", "PING\r\n"+ping+"ping\n")

	kept("an empty name", "-ERR unknown command '', with args beginning with: \r\n", "*1\r\n$0\r\n\r\n")
	kept("a name with line ends gets one reply", "-ERR unknown command 'FOO  -OK', with args beginning with: \r\n", "*1\r\n$8\r\nFOO\r\n-OK\r\n")
	kept("terminal escapes are masked", "-ERR unknown command '?[2J?é', with args beginning with: \r\n", command("\x1b[2J\x9bé"))
	kept("RESP3 types are unknown commands", "-ERR unknown command '%1', with args beginning with: \r\n", "%1\r\n")
	kept("an SSH greeting is an unknown command", "-ERR unknown command 'SSH-2.0-x', with args beginning with: \r\n", "SSH-2.0-x\r\n")
	kept("a word of the largest size", "$65536\r\n"+letters+"\r\n", command("ECHO", letters))
	kept("words of every awkward size",
		"$4085\r\n"+letters[:4085]+"\r\n$4096\r\n"+letters[:4096]+"\r\n$5000\r\n"+letters[:5000]+"\r\n+PONG\r\n",
		command("ECHO", letters[:4085])+command("ECHO", letters[:4096])+command("ECHO", letters[:5000])+ping)

	silent := func(name, output string, inputs ...string) {
		for _, input := range inputs {
			rows = append(rows, hostile{name, input, output, true})
		}
	}
	silent("a browser's POST is closed in silence", "", "POST / HTTP/1.1\r\n\r\nPING\r\n", "post / HTTP/1.1\r\nPING\r\n", command("POST", "/")+ping)
	silent("a browser's GET ends at Host:", "-ERR unknown command 'GET', with args beginning with: '/' 'HTTP/1.1' \r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nPING\r\n", "GET / HTTP/1.1\r\nhost: x\r\nPING\r\n")
	silent("nothing after QUIT is run", "+OK\r\n", "QUIT\r\nPING\r\n", command("QUIT")+strings.Repeat(ping, 100))
	silent("good commands before a bad one are answered first", "+PONG\r\n$1\r\nx\r\n"+protocolError(size),
		ping+command("ECHO", "x")+"*1\r\n$-1\r\n", ping+command("ECHO", "x")+"*1\r\n$9223372036854775807\r\n"+ping)
	silent("nothing after a bad command is run", "+PONG\r\n"+protocolError(count), ping+"*x\r\n"+ping)
	return rows
}

func TestServer_AnswersHostileInputExactly(t *testing.T) {
	s := serve(t, Options{}, newDispatcher())
	for _, row := range hostiles() {
		t.Run(row.name, func(t *testing.T) {
			input, output := row.input, row.output
			if !row.closed { // the connection is kept: it still answers
				input += command("PING") + command("QUIT")
				output += "+PONG\r\n+OK\r\n"
			}
			whole := dial(t, s)
			whole.send(input)
			whole.expectEnd(output)
			if len(input) > 6000 {
				return // byte by byte, long inputs are given to the guard alone
			}
			// What follows the fatal byte may meet a closed socket.
			drip := dial(t, s)
			for i := range len(input) {
				if _, err := drip.Write([]byte{input[i]}); err != nil {
					break
				}
			}
			drip.expectEnd(output)
		})
	}
	if p := s.Stats().Panics; p != 0 {
		t.Errorf("%d panics were contained, want none", p)
	}
}

package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"redlockd/pool/faulty"
	"redlockd/proxy/resp"
)

// scriptedSocket is a socket that delivers its pieces one a read.
type scriptedSocket struct {
	net.Conn
	pieces [][]byte
	closed int
}

func (s *scriptedSocket) Read(p []byte) (int, error) {
	if s.closed > 0 {
		return 0, net.ErrClosed
	}
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *scriptedSocket) Write(p []byte) (int, error) {
	if s.closed > 0 {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func (s *scriptedSocket) Close() error { s.closed++; return nil }

const pingRequest = "*1\r\n$4\r\nPING\r\n"

// receiveGuarded sends some requests and delivers the pieces; it returns what came
// through and why no more did.
func receiveGuarded(t testing.TB, requests int, pieces ...[]byte) (delivered []byte, err error) {
	t.Helper()
	conn := guardReplies(&scriptedSocket{pieces: pieces})
	for range requests {
		if _, err := conn.Write([]byte(pingRequest)); err != nil {
			t.Fatalf("Write(PING): %v", err)
		}
	}
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		delivered = append(delivered, buf[:n]...)
		if err != nil {
			return delivered, err
		}
	}
}

// legalReplies are replies that must pass, each the answer to one request.
var legalReplies = map[string]string{
	"simple string":           "+OK\r\n",
	"empty simple string":     "+\r\n",
	"line of the full length": "+" + strings.Repeat("x", wireMaxLine) + "\r\n",
	"error":                   "-ERR unknown command 'x'\r\n",
	"integer":                 ":0\r\n",
	"negative integer":        ":-17\r\n",
	"largest integer":         ":9223372036854775807\r\n",
	"smallest integer":        ":-9223372036854775808\r\n",
	"bulk":                    "$5\r\nhel\r\n\r\n",
	"empty bulk":              "$0\r\n\r\n",
	"bulk of the full length": "$1048576\r\n" + strings.Repeat("x", wireMaxBulk) + "\r\n",
	"null bulk":               "$-1\r\n",
	"array":                   "*2\r\n$1\r\na\r\n:1\r\n",
	"empty array":             "*0\r\n",
	"null array":              "*-1\r\n",
	"full array":              "*4096\r\n" + strings.Repeat("_\r\n", 4096),
	"array in the middle":     "*3\r\n:1\r\n*2\r\n*0\r\n*-1\r\n:2\r\n",
	"null":                    "_\r\n",
	"true":                    "#t\r\n",
	"false":                   "#f\r\n",
	"double":                  ",1.23e-4\r\n",
	"infinite double":         ",-inf\r\n",
	"big number":              "(3492890328409238509324850943850943825024385\r\n",
	"blob error":              "!21\r\nSYNTAX invalid syntax\r\n",
	"verbatim string":         "=15\r\ntxt:Some string\r\n",
	"map":                     "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n",
	"full map":                "%2048\r\n" + strings.Repeat(":1\r\n:2\r\n", 2048),
	"empty map":               "%0\r\n",
	"set":                     "~2\r\n+a\r\n#t\r\n",
	"full depth":              strings.Repeat("*1\r\n", wireMaxDepth) + ":1\r\n",
	"push before the reply":   ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
	"push with a null":        ">2\r\n+invalidate\r\n_\r\n+OK\r\n",
	"push with a long name":   ">1\r\n$30\r\n" + strings.Repeat("n", 30) + "\r\n+OK\r\n",
}

func TestWire_LetsEveryLegalReplyThrough(t *testing.T) {
	for name, reply := range legalReplies {
		t.Run(name, func(t *testing.T) {
			got, err := receiveGuarded(t, 1, []byte(reply))
			if err != io.EOF {
				t.Fatalf("ended with %v, want EOF", err)
			}
			if string(got) != reply {
				t.Fatalf("delivered %d bytes %.80q, want %d", len(got), got, len(reply))
			}
		})
	}
}

// badReplies are streams a master must not send as the answer to one request;
// prefix is what may still be delivered of them, said what the error must name.
var badReplies = []struct {
	name, stream string
	prefix       string
	said         string
}{
	{"two replies for one request", "+OK\r\n+OK\r\n", "+OK\r\n", `a reply without a request (1 answered): "+OK"`},
	{"bulk length -2", "$-2\r\n", "$-", "length -2 of type '$'"},
	{"bulk length -10", "$-10\r\n", "$-1", "length -10 of type '$'"},
	{"bulk length -0", "$-0\r\n", "$-", "length -0 of type '$'"},
	{"array length -2", "*-2\r\n", "*-", "length -2 of type '*'"},
	{"map length -1", "%-1\r\n", "%", "'-' in a number of type '%'"},
	{"set length -1", "~-1\r\n", "~", "'-' in a number of type '~'"},
	{"blob error length -1", "!-1\r\n", "!", "'-' in a number of type '!'"},
	{"push length -1", ">-1\r\n", ">", "'-' in a number of type '>'"},
	{"largest bulk length", "$9223372036854775807\r\n", "$922337", "length 9223372 or more of type '$' (at most 1048576)"},
	{"bulk one too long", "$1048577\r\n", "$104857", "length 1048577 or more"},
	{"bulk length that wraps", "$18446744073709551620\r\nPING\r\n", "$184467", "length 1844674 or more"},
	{"largest array", "*2147483647\r\n", "*2147", "length 21474 or more of type '*' (at most 4096)"},
	{"array one too long", "*4097\r\n", "*409", "length 4097 or more"},
	{"map one too long", "%2049\r\n", "%204", "length 2049 or more of type '%' (at most 2048)"},
	{"depth 100000", strings.Repeat("*1\r\n", 100_000), strings.Repeat("*1\r\n", wireMaxDepth), "arrays nested deeper than 8"},
	{"depth of maps", strings.Repeat("%1\r\n:1\r\n", 9), strings.Repeat("%1\r\n:1\r\n", wireMaxDepth), "arrays nested deeper than 8"},
	{"reply of many large strings", "*5\r\n" + strings.Repeat("$1048576\r\n"+strings.Repeat("x", wireMaxBulk)+"\r\n", 5),
		"*5\r\n" + strings.Repeat("$1048576\r\n"+strings.Repeat("x", wireMaxBulk)+"\r\n", 3) + "$1048576\r", "more than 4194304 bytes"},
	{"reply of many arrays", "*4096\r\n" + strings.Repeat("*4096\r\n"+strings.Repeat("_\r\n", 4096), 25),
		"*4096\r\n" + strings.Repeat("*4096\r\n"+strings.Repeat("_\r\n", 4096), 24) + "*4096\r", "more than 4194304 bytes"},
	{"reply of many long lines", "*100\r\n" + strings.Repeat("+"+strings.Repeat("x", wireMaxLine)+"\r\n", 100),
		"*100\r\n" + strings.Repeat("+"+strings.Repeat("x", wireMaxLine)+"\r\n", 63) + "+" + strings.Repeat("x", wireMaxReply-100*wireElement-63*wireMaxLine), "a reply longer than 4194304"},
	{"streamed string", "$?\r\n;4\r\nhell\r\n;0\r\n", "$", "a streamed reply of type '$'"},
	{"streamed array", "*?\r\n:1\r\n.\r\n", "*", "a streamed reply of type '*'"},
	{"end of a stream", ".\r\n", "", "unknown type '.'"},
	{"attribute", "|1\r\n+a\r\n:1\r\n+OK\r\n", "", "unknown type '|'"},
	{"garbage", "HTTP/1.1 400 Bad Request\r\n", "", `unknown type 'H': "HTTP/1.1 400 Bad Request"`},
	{"zero bytes", "\x00\x00\x00", "", `unknown type '\x00'`},
	{"garbage as an element", "*2\r\n:1\r\nx", "*2\r\n:1\r\n", "unknown type 'x'"},
	{"no length", "$\r\n", "$", `'\r' in a number of type '$'`},
	{"length with a sign", "$+4\r\n", "$", "'+' in a number"},
	{"length with a space", "$ 4\r\n", "$", "' ' in a number"},
	{"length with a leading zero", "$04\r\n", "$0", "a leading zero"},
	{"endless zeros", "*" + strings.Repeat("0", 1<<16), "*0", "a leading zero"},
	{"length in hexadecimal", "$0x4\r\n", "$0", "'x' in a number"},
	{"minus alone", ":-\r\n", ":-", `'\r' in a number`},
	{"two minuses", ":--1\r\n", ":-", "'-' in a number"},
	{"integer of 2^63", ":9223372036854775808\r\n", ":922337203685477580", "beyond 64 bits"},
	{"integer of -2^63-1", ":-9223372036854775809\r\n", ":-922337203685477580", "beyond 64 bits"},
	{"integer of twenty digits", ":01234567890123456789\r\n", ":0123456789012345678", "beyond 64 bits"},
	{"bulk longer than announced", "$2\r\nabc\r\n", "$2\r\nab", "'c' instead of CR LF"},
	{"bulk with half an end", "$1\r\na\rb", "$1\r\na\r", "'b' instead of LF"},
	{"line feed alone ends a line", "+OK\n", "+OK", "LF without CR"},
	{"line feed alone ends a length", "$2\nok\r\n", "$2", `'\n' in a number`},
	{"carriage return in a line", "+a\rb\r\n", "+a\r", "'b' instead of LF"},
	{"overlong line", "-" + strings.Repeat("x", wireMaxLine+1) + "\r\n", "-" + strings.Repeat("x", wireMaxLine), "a line longer than 65536 bytes"},
	{"neither true nor false", "#x\r\n", "#", "'x' as a boolean"},
	{"more after a boolean", "#true\r\n", "#t", "'r' instead of CR LF"},
	{"more after a null", "_x\r\n", "_", "'x' instead of CR LF"},
	{"push inside an array", "*2\r\n>2\r\n", "*2\r\n", "a push inside another reply"},
	{"confirmed subscription", ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", ">3\r\n$9\r\nsubscribe\r", `a push "subscribe" for a subscription that does not exist`},
	{"confirmed shard subscription", ">3\r\n+ssubscribe\r\n$1\r\nc\r\n:1\r\n", ">3\r\n+ssubscribe\r", `a push "ssubscribe"`},
	{"confirmed unsubscription", ">3\r\n+punsubscribe\r\n$1\r\nc\r\n:1\r\n", ">3\r\n+punsubscribe\r", `a push "punsubscribe"`},
	{"push of nothing", ">0\r\n", ">0\r", "an empty push"},
	{"push that begins with an array", ">2\r\n*0\r\n+a\r\n", ">2\r\n", "a push that begins with type '*'"},
	{"push without a name", ">2\r\n$-1\r\n+a\r\n", ">2\r\n$-1\r", "a push without a name"},
}

func TestWire_StopsAtTheOffendingByteAndSaysWhatItWas(t *testing.T) {
	for _, k := range badReplies {
		t.Run(k.name, func(t *testing.T) {
			got, err := receiveGuarded(t, 1, []byte(k.stream))
			if fault := (*wireError)(nil); !errors.As(err, &fault) {
				t.Fatalf("ended with %v after %.80q, want a *wireError", err, got)
			}
			if !strings.Contains(err.Error(), "master sent "+k.said) && !strings.Contains(err.Error(), k.said) {
				t.Errorf("said %q, want it to name %q", err, k.said)
			}
			if !bytes.Equal(got, []byte(k.prefix)) {
				t.Errorf("delivered %d bytes %.80q, want %d %.80q", len(got), got, len(k.prefix), k.prefix)
			}
		})
	}
}

func TestWire_RefusesAnythingBeforeTheFirstRequest(t *testing.T) {
	for stream, said := range map[string]string{
		"-ERR max number of clients reached\r\n":     `without a request (0 answered): "-ERR max number of clients reached"`,
		">2\r\n+invalidate\r\n*1\r\n+k\r\n":          "a push before any request",
		"$5\r\nhello\r\n":                            "without a request",
		strings.Repeat("*1\r\n", 100_000) + ":1\r\n": "without a request",
	} {
		got, err := receiveGuarded(t, 0, []byte(stream))
		if len(got) != 0 || err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%.40q: delivered %.40q, said %v; want nothing and %q", stream, got, err, said)
		}
	}
}

func TestWire_CountsRepliesAgainstRequestsHoweverTheyAreWritten(t *testing.T) {
	const requests = pingRequest + "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\n*1\r\n$4\r\nPING\r\n" + pingRequest
	for cut := range len(requests) {
		socket := &scriptedSocket{}
		conn := guardReplies(socket)
		for _, part := range []string{requests[:cut], requests[cut:]} {
			if n, err := conn.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("cut at %d: Write = %d, %v", cut, n, err)
			}
		}
		socket.pieces = [][]byte{[]byte("+1\r\n>1\r\n+invalidate\r\n"), []byte("+2\r\n+3\r\n+4\r\n")}
		got, err := io.ReadAll(conn)
		if want := "+1\r\n>1\r\n+invalidate\r\n+2\r\n+3\r\n"; string(got) != want || err == nil {
			t.Fatalf("cut at %d: delivered %q and %v, want %q and an error", cut, got, err, want)
		}
	}
}

func TestWire_AReplyIsNotDueBeforeItsRequestIsWhole(t *testing.T) {
	socket := &scriptedSocket{pieces: [][]byte{[]byte("+PONG\r\n")}}
	conn := guardReplies(socket)
	if _, err := conn.Write([]byte(pingRequest[:len(pingRequest)-1])); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); len(got) > 0 || err == nil {
		t.Fatalf("delivered %q and %v, want only an error", got, err)
	}
}

func TestWire_RefusesToSendWhatItCannotCount(t *testing.T) {
	for _, request := range []string{"PING\r\n", "*0\r\n", "*-1\r\n", "*1\r\n+PING\r\n", "*1\r\n$-1\r\n", "*99999999999999\r\n", "*1\n\n"} {
		socket := &scriptedSocket{pieces: [][]byte{[]byte("+PONG\r\n")}}
		conn := guardReplies(socket)
		if n, err := conn.Write([]byte(request)); n != 0 || err == nil {
			t.Errorf("Write(%q) = %d, %v; want 0 and an error", request, n, err)
		}
	}
}

func TestWire_StaysClosedAndGivesTheSameReasonToEverybody(t *testing.T) {
	socket := &scriptedSocket{pieces: [][]byte{[]byte("nonsense"), []byte("+OK\r\n")}}
	conn := guardReplies(socket)
	if _, err := conn.Write([]byte(pingRequest)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, first := conn.Read(buf)
	if n != 0 || first == nil {
		t.Fatalf("Read = %d, %v; want 0 and an error", n, first)
	}
	if socket.closed != 1 {
		t.Errorf("the socket was closed %d times, want once", socket.closed)
	}
	if n, again := conn.Read(buf); n != 0 || again != first {
		t.Errorf("second Read = %d, %v; want 0 and %v", n, again, first)
	}
	if n, err := conn.Write([]byte(pingRequest)); n != 0 || err != first {
		t.Errorf("Write = %d, %v; want 0 and %v", n, err, first)
	}
}

func TestWire_JudgesAlikeHoweverTheStreamIsCut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var streams []string
	for _, k := range badReplies {
		streams = append(streams, k.stream)
	}
	for _, reply := range legalReplies {
		streams = append(streams, reply)
	}
	for _, s := range streams {
		want, wantErr := receiveGuarded(t, 1, []byte(s))
		for range 8 {
			got, err := receiveGuarded(t, 1, cutUp(random, []byte(s))...)
			if !bytes.Equal(got, want) || !sameReason(err, wantErr) {
				t.Fatalf("%.60q cut: delivered %d bytes and %v, whole: %d and %v", s, len(got), err, len(want), wantErr)
			}
		}
	}
}

// cutUp cuts b at random places, most of them near its start.
func cutUp(random *rand.Rand, b []byte) (pieces [][]byte) {
	for len(b) > 0 && len(pieces) < 1000 {
		n := 1 + random.IntN(1+random.IntN(8))
		n = min(n, len(b))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	if len(b) > 0 {
		pieces = append(pieces, b)
	}
	return pieces
}

// sameReason compares all but what an error quotes of the bytes that followed,
// which differ with the cut.
func sameReason(a, b error) bool {
	x, _, _ := strings.Cut(a.Error(), ": ")
	y, _, _ := strings.Cut(b.Error(), ": ")
	x, _, _ = strings.Cut(x, ";")
	y, _, _ = strings.Cut(y, ";")
	return x == y
}

func TestWire_AllocatesNothing(t *testing.T) {
	reply := []byte("+OK\r\n:1\r\n$3\r\nabc\r\n*2\r\n$10\r\n1795196016\r\n$6\r\n789101\r\n>2\r\n+invalidate\r\n*1\r\n+k\r\n")
	socket := &endlessSocket{data: reply}
	conn := guardReplies(socket)
	request := []byte(strings.Repeat(pingRequest, 4))
	buf := make([]byte, len(reply))
	if allocs := testing.AllocsPerRun(100, func() {
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations for four requests and their replies, want none", allocs)
	}
}

// endlessSocket is a socket that says the same for ever.
type endlessSocket struct {
	net.Conn
	data []byte
	at   int
}

func (e *endlessSocket) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], e.data[e.at:])
		n += k
		e.at = (e.at + k) % len(e.data)
	}
	return n, nil
}

func (e *endlessSocket) Write(p []byte) (int, error) { return len(p), nil }

func FuzzWire(f *testing.F) {
	for _, k := range badReplies {
		f.Add([]byte(k.stream[:min(len(k.stream), 200)]), uint64(1))
	}
	for _, reply := range legalReplies {
		f.Add([]byte(reply[:min(len(reply), 200)]+"+OK\r\n"), uint64(2))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		const requests = 3
		whole, wholeErr := receiveGuarded(t, requests, stream)
		parts, partsErr := receiveGuarded(t, requests, cutUp(rand.New(rand.NewPCG(seed, 1)), stream)...)
		if !bytes.Equal(whole, parts) || !sameReason(wholeErr, partsErr) {
			t.Fatalf("whole: %q, %v\ncut:   %q, %v", whole, wholeErr, parts, partsErr)
		}
		if !bytes.HasPrefix(stream, whole) {
			t.Fatalf("delivered %q of %q", whole, stream)
		}
		if wholeErr == io.EOF && len(whole) != len(stream) {
			t.Fatalf("%d of %d bytes delivered without a reason", len(whole), len(stream))
		}
	})
}

// badMaster greets as Redis does, answers every command with +OK until it is
// told to misbehave, and then sends what it is told to.
type badMaster struct {
	ln     net.Listener
	hello  string                 // answer to HELLO
	say    atomic.Pointer[string] // instead of the answer to the next command
	hangUp bool                   // after having said it
	once   bool                   // hang up after every answer

	accepted atomic.Int64
	wg       sync.WaitGroup
}

const goodGreeting = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n" +
	"$2\r\nid\r\n:5\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"

func newBadMaster(t testing.TB, hello string, hangUp bool) *badMaster {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &badMaster{ln: ln, hello: hello, hangUp: hangUp}
	m.wg.Go(m.accept)
	return m
}

func (m *badMaster) close() {
	m.ln.Close()
	m.wg.Wait()
}

func (m *badMaster) accept() {
	for {
		conn, err := m.ln.Accept()
		if err != nil {
			return
		}
		m.accepted.Add(1)
		m.wg.Go(func() { m.serve(conn) })
	}
}

func (m *badMaster) serve(conn net.Conn) {
	defer conn.Close()
	in := resp.NewReader(conn)
	for {
		request, err := in.ReadValue()
		if err != nil {
			return
		}
		words := request.Words()
		answer := "+OK\r\n"
		if words[0] == "HELLO" {
			answer = m.hello
		} else if words[0] != "PING" {
			if say := m.say.Swap(nil); say != nil {
				conn.Write([]byte(*say))
				if m.hangUp {
					return
				}
				continue
			}
		}
		if _, err := conn.Write([]byte(answer)); err != nil || m.once {
			return
		}
	}
}

// guardedClient is a client as a lane's, over guarded connections; err is what
// its first connection came to.
func guardedClient(addr string) (client rueidis.Client, err error) {
	return rueidis.NewClient(guardedOption(addr))
}

func guardedOption(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true, DisableCache: true, DisableRetry: true, AlwaysPipelining: true,
		PipelineMultiplex: -1, BlockingPipeline: -1, RingScaleEachConn: 4,
		ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10,
		ConnWriteTimeout: 5 * time.Minute, // a busy machine delivers byte by byte slowly
		ClientSetInfo:    rueidis.DisableClientSetInfo,
		DialCtxFn: func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return guardReplies(conn), nil
		},
	}
}

// unhurried is a limit that a busy machine does not reach.
const unhurried = 10 * time.Second

// leavesNothing fails if goroutines stay that were not there before. Those that are
// about to end have time, on a busy machine more than goleak gives them.
func leavesNothing(t *testing.T, before goleak.Option) {
	t.Helper()
	var left error
	for end := time.Now().Add(2 * unhurried); time.Now().Before(end); {
		if left = goleak.Find(before); left == nil {
			return
		}
	}
	t.Error(left)
}

func callOnce(client rueidis.Client) error {
	return client.Do(context.Background(), client.B().Set().Key("k").Value("v").Nx().Build()).Error()
}

func TestWire_AClientSurvivesWhateverItsMasterSays(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	master := newBadMaster(t, goodGreeting, false)
	defer master.close()
	client, err := guardedClient(master.ln.Addr().String())
	if err != nil {
		t.Fatalf("first connection: %v", err)
	}
	defer client.Close()
	for _, k := range badReplies {
		before := master.accepted.Load()
		master.say.Store(&k.stream)
		err := callOnce(client)
		if answered := strings.HasPrefix(k.prefix, "+OK\r\n"); answered && err != nil {
			t.Errorf("%s: the call ended with %v, want its answer", k.name, err)
		} else if !answered && (err == nil || !strings.Contains(err.Error(), "master sent ")) {
			t.Errorf("%s: the call ended with %v, want what the master sent", k.name, err)
		}
		if !recovers(client, master, before) {
			t.Fatalf("%s: no new connection, or one that does not work", k.name)
		}
	}
}

// recovers reports whether calls succeed on a connection made after there had
// been so many; the first ones may still meet the old one.
func recovers(client rueidis.Client, master *badMaster, connections int64) bool {
	for end := time.Now().Add(unhurried); time.Now().Before(end); {
		if callOnce(client) == nil && master.accepted.Load() > connections {
			return true
		}
	}
	return false
}

func TestWire_ACallFailsWhenItsMasterHangsUpInTheMiddleOfAReply(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	master := newBadMaster(t, goodGreeting, true)
	defer master.close()
	client, err := guardedClient(master.ln.Addr().String())
	if err != nil {
		t.Fatalf("first connection: %v", err)
	}
	defer client.Close()
	for _, half := range []string{"", "+", "+O", "+OK\r", "$10", "$10\r\n", "$10\r\nabc", "$3\r\nabc\r", "*3\r\n:1\r\n", ">2\r\n+inv", "_"} {
		before := master.accepted.Load()
		master.say.Store(&half)
		if err := callOnce(client); err == nil {
			t.Errorf("%q: the call succeeded", half)
		}
		if !recovers(client, master, before) {
			t.Fatalf("%q: no new connection, or one that does not work", half)
		}
	}
}

func TestWire_AClientSurvivesWhateverItsMasterGreetsWith(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	greetings := map[string]string{"closing": ""}
	for _, k := range badReplies {
		greetings[k.name] = k.stream
	}
	for name, reply := range legalReplies {
		greetings["legal: "+name] = reply
	}
	for name, hello := range greetings {
		// The greeting is followed by the end, so a client that makes nothing
		// of it does not wait for more.
		master := newBadMaster(t, hello, false)
		master.once = true
		client, err := guardedClient(master.ln.Addr().String())
		if err == nil {
			t.Errorf("%s: accepted as a greeting", name)
		}
		client.Close()
		master.close()
	}
}

func TestWire_ARealMasterIsNeverRefusedHoweverItsRepliesArrive(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { leavesNothing(t, before) }) // after the server's own
	relay := faulty.NewRelay(faulty.Start(t).Addr())
	defer relay.Close()
	relay.ByteByByte(true)
	invalidated := make(chan string, 1)
	option := guardedOption(relay.Addr())
	option.OnInvalidations = func(keys []rueidis.RedisMessage) {
		for _, key := range keys { // none when the connection ends
			name, _ := key.ToString()
			invalidated <- name
		}
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatalf("first connection: %v", err)
	}
	defer client.Close()
	const nested = "redis.setresp(3) return {1, false, 'x', {{{{{{}}}}}}, {map={a=1}}, {set={b=true}}, {double=1.5}, true, {err='E'}, {ok='K'}, cjson.null}"
	var batch rueidis.Commands
	for _, words := range [][]string{
		{"CLIENT", "TRACKING", "ON"}, {"SET", "k", strings.Repeat("v", 70_000)}, {"GET", "k"}, {"GET", "none"},
		{"SET", "k", "w", "NX"}, {"DEL", "k"}, {"INFO", "everything"}, {"COMMAND", "DOCS", "set"}, {"CONFIG", "GET", "*"},
		{"TIME"}, {"EVAL", nested, "0"}, {"NOSUCH", "a\r\nb"}, {"SCAN", "0"}, {"ZADD", "z", "1.5", "m"},
		{"ZRANGE", "z", "0", "-1", "WITHSCORES"}, {"HELLO", "3"}, {"EXEC"}, {"CLIENT", "LIST"},
	} {
		batch = append(batch, client.B().Arbitrary(words...).Build())
	}
	for i, result := range client.DoMulti(context.Background(), batch...) {
		if err := result.NonRedisError(); err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	select {
	case key := <-invalidated:
		if key != "k" {
			t.Errorf("invalidated %q, want k", key)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("no invalidation of k arrives")
	}
	if c := relay.Counts(); c.Accepted != 1 {
		t.Errorf("%d connections, want the first one to have lasted", c.Accepted)
	}
}

func BenchmarkWire_Replies(b *testing.B) {
	for _, bench := range []struct {
		name, data string
		replies    int // in data
	}{
		{"ok", strings.Repeat("+OK\r\n", 100), 100},
		{"nil", strings.Repeat("$-1\r\n", 100), 100},
		{"flush", strings.Repeat("+OK\r\n", 40) + strings.Repeat("_\r\n", 12) + strings.Repeat(":1\r\n", 45) +
			",1795196016789101\r\n:0\r\n*2\r\n$10\r\n1795196016\r\n$6\r\n789101\r\n", 100},
		{"bulk64k", "$65536\r\n" + strings.Repeat("x", 65536) + "\r\n", 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var replies wireReplies
			var asked atomic.Int64
			data := []byte(bench.data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				asked.Add(int64(bench.replies))
				if n, what := replies.check(data, &asked); n != len(data) {
					b.Fatal(n, what)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bench.replies), "ns/reply")
		})
	}
}

func BenchmarkWire_Requests(b *testing.B) {
	const acquires = 100
	data := []byte(strings.Repeat("*6\r\n$3\r\nSET\r\n$8\r\ninvoices\r\n$27\r\nabcdefghijklmnopqrstuvwxyz0\r\n$2\r\nNX\r\n$4\r\nPXAT\r\n$13\r\n1795196016789\r\n", acquires))
	var requests wireRequests
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if n, ok := requests.count(data); n != acquires || !ok {
			b.Fatal(n, ok)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*acquires), "ns/request")
}

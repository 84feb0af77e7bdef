package dropin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// master is a real redis-server that a test talks to.
type master struct {
	t    *testing.T
	conn *faulty.Conn
}

func startMaster(t *testing.T) *master {
	t.Helper()
	server := faulty.Start(t)
	conn, err := faulty.Dial(server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &master{t: t, conn: conn}
}

// do sends one command.
func (m *master) do(words ...string) Reply {
	m.t.Helper()
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	answer, err := m.conn.Do(args...)
	var refused faulty.ReplyError
	if errors.As(err, &refused) {
		return failed(string(refused))
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return asReply(answer)
}

func asReply(answer any) Reply {
	switch v := answer.(type) {
	case int64:
		return number(v)
	case string:
		return bulk(v)
	case []any:
		list := Reply{Kind: KindArray}
		for _, item := range v {
			list.Items = append(list.Items, asReply(item))
		}
		return list
	}
	return Reply{}
}

// hold prepares a key for a holding.
func (m *master) hold(key, token string, h Holding) {
	m.t.Helper()
	m.do("FLUSHALL")
	switch h {
	case Mine:
		m.do("SET", key, token, "PX", "60000")
	case Other:
		m.do("SET", key, "somebody else's token", "PX", "60000")
	case Endless:
		m.do("SET", key, token)
	}
}

func (m *master) eval(text string, call Call) Reply {
	m.t.Helper()
	return m.do(append(append([]string{"EVAL", text, strconv.Itoa(len(call.Keys))}, call.Keys...), call.Args...)...)
}

func TestVote_OfARealMasterIsAsTheClassSays(t *testing.T) {
	m := startMaster(t)
	tried := 0
	eachBehaviour(t, func(row knownScript, text string) {
		if strings.Contains(text, "IFEQ") {
			return // of a later Redis than the one of the tests
		}
		tried++
		call := row.example()
		for i, word := range strings.Fields(row.args) {
			switch word {
			case "at":
				call.Args[i] = strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10)
			case "db":
				call.Args[i] = "0"
			}
		}
		probed, err := classOf(text, call)
		if err != nil {
			t.Error(err)
			return
		}
		for _, class := range []*Class{probed, row.class()} {
			for h := Absent; h < holdings; h++ {
				m.votes(class, row, text, call, h)
			}
		}
	})
	if tried < 70 {
		t.Errorf("%d scripts were run, want 70", tried)
	}
}

// votes runs a script on the master and compares what it answers and does with
// what the class says.
func (m *master) votes(class *Class, row knownScript, text string, call Call, h Holding) {
	m.t.Helper()
	key := "lock:orders"
	if len(call.Keys) > 0 {
		key = call.Keys[0]
	}
	token := class.TokenOf(call)
	if token == "" {
		token = "a token that nobody gives"
	}
	m.hold(key, token, h)
	reply := m.eval(text, call)
	name := fmt.Sprintf("%s of %s, holding %d: %v", row.purpose, row.library, h, reply)
	if got := class.Vote(call, reply); class.Does(h) != (got == Yes) {
		m.t.Errorf("%s is vote %d, the script does it: %v", name, got, class.Does(h))
	}
	found := false
	for _, explained := range class.Holdings(call, reply) {
		found = found || explained == h
	}
	if !found {
		m.t.Errorf("%s is not explained by its holding", name)
	}
	if class.Op != Read {
		m.did(class, name, key, token, h)
	}
}

// did looks at the key afterwards.
func (m *master) did(class *Class, name, key, token string, h Holding) {
	m.t.Helper()
	holds, left := m.do("GET", key), m.do("PTTL", key).Int
	want, least, most := Reply{}, int64(-2), int64(-2)
	switch h {
	case Mine, Other:
		want, least, most = bulk(token), 30_000, 60_000
		if h == Other {
			want = bulk("somebody else's token")
		}
	case Endless:
		want, least, most = bulk(token), -1, -1
	}
	if class.Does(h) {
		switch class.Op {
		case Release, Discard:
			want, least, most = Reply{}, -2, -2
		case ExtendAdd:
			want, least, most = bulk(token), 60_001, 80_000
		default:
			want, least, most = bulk(token), 1000, 20_000
		}
	}
	if holds.Kind != want.Kind || holds.Text != want.Text || left < least || left > most {
		m.t.Errorf("%s leaves %v with %d ms, want %v with %d to %d", name, holds, left, want, least, most)
	}
}

// Random commands, on the mock and on a real master: they must answer alike.
func TestMock_AnswersAsARealMasterDoes(t *testing.T) {
	m := startMaster(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 40 {
		m.do("FLUSHALL")
		s := newStore()
		for step := range 40 {
			words := command(random)
			got, want := s.do(words), m.do(words...)
			if !alike(words, got, want) {
				t.Fatalf("seed %d, step %d: %q\n mock %+v\n real %+v", seed, step, words, got, want)
			}
		}
	}
}

func newStore() *store {
	return &store{
		now: time.Now().UnixMilli(), items: make(map[string]*item), declared: map[string]bool{"a": true, "b": true},
		touched: make(map[string]bool), signals: make(map[string]bool),
	}
}

// command makes one up; times are far from now, so that none passes meanwhile.
func command(random *rand.Rand) []string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	key := func() string { return pick("a", "b") }
	value := func() string { return pick("x", "y", "7", "-3", "", "07", "9223372036854775807") }
	// No two are alike: only the clock of the real master runs, and GT would see it.
	far := func() string { return strconv.FormatInt(600_000+random.Int64N(1e12), 10) }
	ms := func() string { return pick(far(), far(), "0", "-5", "x", "1 ", "9223372036854775807") }
	at := func() string { return pick("4000000000000", "4000000000", "1", "-1", "x") }
	switch random.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		words := []string{pick("SET", "set"), key(), value()}
		for range random.IntN(4) {
			words = append(words, pick("NX", "nx", "XX", "GET", "KEEPTTL", "Px", "EX", "PXAT", "EXAT", "bogus", far(), far(), "4000000000"))
		}
		return words
	case 6:
		return []string{pick("SETEX", "PSETEX"), key(), ms(), value()}
	case 7, 8:
		words := []string{pick("EXPIRE", "PEXPIRE"), key(), ms()}
		return append(words, pick("NX", "XX", "GT", "LT", "no"))[:3+random.IntN(2)]
	case 9:
		return []string{pick("EXPIREAT", "PEXPIREAT"), key(), at()}
	case 10:
		return []string{pick("DEL", "UNLINK", "EXISTS", "MGET", "TOUCH"), key(), key()}
	case 11:
		return []string{pick("MSET", "MSETNX"), "a", value(), "b", value()}
	case 12:
		return []string{pick("INCRBY", "DECRBY"), key(), pick("1", "-1", "x", "9223372036854775807")}
	case 13:
		return []string{pick("GETRANGE", "SUBSTR"), key(), pick("0", "1", "-1", "-99", "99"), pick("0", "1", "-1", "-99", "99")}
	case 14:
		return []string{pick("LPUSH", "RPUSH"), key(), value()}
	case 15:
		return []string{pick("SETNX", "GETSET"), key(), value()}
	}
	return []string{pick("GET", "TTL", "PTTL", "TYPE", "STRLEN", "PERSIST", "LLEN", "INCR", "DECR", "GETDEL"), key()}
}

// alike: a real clock runs, and of an error only the code matters, as the
// words change from version to version.
func alike(words []string, got, want Reply) bool {
	if name := strings.ToUpper(words[0]); name == "PTTL" || name == "TTL" {
		slack := int64(60_000)
		return got.Int == want.Int || got.Int > 0 && want.Int > 0 && got.Int-want.Int < slack && want.Int-got.Int < slack
	}
	if got.Kind == KindError || want.Kind == KindError {
		code := func(r Reply) string { word, _, _ := strings.Cut(r.Text, " "); return word }
		return got.Kind == want.Kind && code(got) == code(want)
	}
	if len(got.Items) != len(want.Items) || got.Int != want.Int || got.Text != want.Text {
		return false
	}
	for i := range got.Items {
		if !alike(words, got.Items[i], want.Items[i]) {
			return false
		}
	}
	return got.Kind == want.Kind || isText(got.Kind) && isText(want.Kind)
}

// The texts of libraries are theirs and not kept here. Whoever has some of them in
// a directory (LOCK_SCRIPTS), one a file, can see each classified by its behaviour
// alone as the table says.
func TestProbe_ClassifiesTheTextsOfLibrariesAsTheTableDoes(t *testing.T) {
	dir := os.Getenv("LOCK_SCRIPTS")
	if dir == "" {
		t.Skip("LOCK_SCRIPTS names no directory with texts of lock libraries")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string) // by SHA1
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[shaOf(string(text)).String()] = string(text)
	}
	found := 0
	for _, row := range knownScripts {
		text, ok := texts[row.sha]
		if !ok || row.keys == 0 { // one that makes up the names of its keys is known by its SHA1 alone
			continue
		}
		found++
		class, err := classBehind(text, row.example(), true)
		if err != nil {
			t.Errorf("%s of %s: %v", row.purpose, row.library, err)
		} else if got, want := described(class), described(row.class()); got != want {
			t.Errorf("%s of %s:\n got %s\nwant %s", row.purpose, row.library, got, want)
		}
	}
	t.Logf("%d of %d known scripts, %d texts", found, len(knownScripts), len(files))
	if found == 0 {
		t.Error("no text is that of a known script")
	}
}

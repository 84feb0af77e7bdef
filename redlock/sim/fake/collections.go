package fake

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"redlockd/pool/wire"
)

// The commands of sorted sets and hashes. Each gets the value at its key, an empty one if there is none.

// on is the command of a handler for values of one kind.
func on(kind Kind, handle func(m *Master, a []string, v *Value) wire.Reply) func(*Master, []string) wire.Reply {
	return func(m *Master, a []string) wire.Reply {
		v := m.Lookup(a[1])
		if v == nil {
			v = &Value{Kind: kind}
		}
		if v.Kind != kind {
			return wrongType
		}
		return handle(m, a, v)
	}
}

// grown stores a collection that has got its first element.
func (m *Master) grown(key string, v *Value) {
	if len(v.Scores)+len(v.Fields) > 0 {
		m.Memory[key] = v
	}
}

// shrunk removes a collection that has become empty.
func (m *Master) shrunk(key string, before, after int) wire.Reply {
	if after == 0 {
		delete(m.Memory, key)
	}
	return count(before - after)
}

func count(n int) wire.Reply { return Number(int64(n)) }

func (m *Master) zadd(a []string, v *Value) wire.Reply {
	nx, xx, gt, ch, i := false, false, false, false, 2
	for ; i < len(a) && slices.Contains([]string{"NX", "XX", "GT", "CH"}, a[i]); i++ {
		nx, xx, gt, ch = nx || a[i] == "NX", xx || a[i] == "XX", gt || a[i] == "GT", ch || a[i] == "CH"
	}
	if len(a) <= i || (len(a)-i)%2 != 0 {
		return syntaxError
	}
	before, changed := len(v.Scores), 0
	for ; i < len(a); i += 2 {
		score, err := strconv.ParseFloat(a[i], 64)
		if err != nil {
			return notFloat
		}
		if at := v.score(a[i+1]); at < 0 && !xx || at >= 0 && !nx && !(gt && score <= v.Scores[at].Score) {
			if at < 0 || v.Scores[at].Score != score {
				changed++
			}
			v.setScore(a[i+1], score)
		}
	}
	m.grown(a[1], v)
	if ch {
		return count(changed)
	}
	return count(len(v.Scores) - before)
}

func (m *Master) zscore(a []string, v *Value) wire.Reply {
	if i := v.score(a[2]); i >= 0 {
		return Text(decimal(v.Scores[i].Score))
	}
	return null
}

func (m *Master) zmscore(a []string, v *Value) wire.Reply {
	scores := List()
	for _, member := range a[2:] {
		scores.Items = append(scores.Items, m.zscore([]string{a[0], a[1], member}, v))
	}
	return scores
}

func (m *Master) zrem(a []string, v *Value) wire.Reply {
	n := len(v.Scores)
	v.Scores = slices.DeleteFunc(v.Scores, func(e Scored) bool { return slices.Contains(a[2:], e.Member) })
	return m.shrunk(a[1], n, len(v.Scores))
}

func (m *Master) zcard(_ []string, v *Value) wire.Reply { return count(len(v.Scores)) }

func (m *Master) zrange(a []string, v *Value) wire.Reply {
	if len(a) > 4 && strings.EqualFold(a[4], "BYSCORE") {
		return zrangeByScore(a, v)
	}
	from, err1 := strconv.Atoi(a[2])
	to, err2 := strconv.Atoi(a[3])
	if err1 != nil || err2 != nil {
		return notInteger
	}
	out, n := List(), len(v.Scores)
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to += n
	}
	for i := from; i <= min(to, n-1); i++ {
		out.Items = append(out.Items, Text(v.Scores[i].Member))
		if len(a) > 4 {
			out.Items = append(out.Items, Text(decimal(v.Scores[i].Score)))
		}
	}
	return out
}

// zrangeByScore accepts the forms that the product sends: BYSCORE REV LIMIT 0 count, and WITHSCORES.
func zrangeByScore(a []string, v *Value) wire.Reply {
	scores := len(a) == 10 && strings.EqualFold(a[9], "WITHSCORES")
	if len(a) != 9 && !scores || !strings.EqualFold(a[5], "REV") || !strings.EqualFold(a[6], "LIMIT") || a[7] != "0" {
		return syntaxError
	}
	most, err := strconv.Atoi(a[8])
	if err != nil {
		return notInteger
	}
	some, err := v.within(a[3], a[2])
	if err != nil {
		return notRange
	}
	out := List()
	slices.Reverse(some)
	for _, e := range some[:min(most, len(some))] {
		if out.Items = append(out.Items, Text(e.Member)); scores {
			out.Items = append(out.Items, Text(decimal(e.Score)))
		}
	}
	return out
}

// within are the members in a range of scores.
func (v *Value) within(from, to string) (some []Scored, err error) {
	low, above, err1 := bound(from)
	high, below, err2 := bound(to)
	for _, e := range v.Scores {
		if (e.Score > low || e.Score == low && !above) && (e.Score < high || e.Score == high && !below) {
			some = append(some, e)
		}
	}
	return some, errors.Join(err1, err2)
}

// bound reads a bound of a range of scores, exclusive with "(".
func bound(word string) (score float64, exclusive bool, err error) {
	word, exclusive = strings.CutPrefix(word, "(")
	switch word {
	case "-inf":
		return math.Inf(-1), exclusive, nil
	case "+inf", "inf":
		return math.Inf(1), exclusive, nil
	}
	score, err = strconv.ParseFloat(word, 64)
	return score, exclusive, err
}

func (m *Master) zcount(a []string, v *Value) wire.Reply {
	some, err := v.within(a[2], a[3])
	if err != nil {
		return notRange
	}
	return count(len(some))
}

func (m *Master) zremrangebyscore(a []string, v *Value) wire.Reply {
	some, err := v.within(a[2], a[3])
	if err != nil {
		return notRange
	}
	n := len(v.Scores)
	v.Scores = slices.DeleteFunc(v.Scores, func(e Scored) bool { return slices.Contains(some, e) })
	return m.shrunk(a[1], n, len(v.Scores))
}

// zrangebyscore accepts LIMIT from the first one on.
func (m *Master) zrangebyscore(a []string, v *Value) wire.Reply {
	some, err := v.within(a[2], a[3])
	if err != nil {
		return notRange
	}
	switch {
	case len(a) == 7 && strings.EqualFold(a[4], "LIMIT") && a[5] == "0":
		most, err := strconv.Atoi(a[6])
		if err != nil {
			return notInteger
		}
		some = some[:min(most, len(some))]
	case len(a) != 4:
		return syntaxError
	}
	out := List()
	for _, e := range some {
		out.Items = append(out.Items, Text(e.Member))
	}
	return out
}

func (m *Master) hset(a []string, v *Value) wire.Reply {
	if len(a) < 4 || len(a)%2 != 0 {
		return refusal("ERR wrong number of arguments for 'hset' command")
	}
	before := len(v.Fields)
	for i := 2; i < len(a); i += 2 {
		v.setField(a[i], a[i+1])
	}
	m.grown(a[1], v)
	return count(len(v.Fields) - before)
}

func (m *Master) hget(a []string, v *Value) wire.Reply {
	if i := v.field(a[2]); i >= 0 {
		return Text(v.Fields[i].Value)
	}
	return null
}

func (m *Master) hmget(a []string, v *Value) wire.Reply {
	out := List()
	for _, name := range a[2:] {
		out.Items = append(out.Items, m.hget([]string{a[0], a[1], name}, v))
	}
	return out
}

func (m *Master) hgetall(_ []string, v *Value) wire.Reply {
	out := List()
	for _, f := range v.Fields {
		out.Items = append(out.Items, Text(f.Name), Text(f.Value))
	}
	return out
}

func (m *Master) hdel(a []string, v *Value) wire.Reply {
	n := len(v.Fields)
	v.Fields = slices.DeleteFunc(v.Fields, func(f Field) bool { return slices.Contains(a[2:], f.Name) })
	return m.shrunk(a[1], n, len(v.Fields))
}

func (m *Master) hlen(_ []string, v *Value) wire.Reply { return count(len(v.Fields)) }

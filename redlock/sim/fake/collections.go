package fake

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"redlockd/pool/wire"
)

// The commands of sorted sets and hashes.

func (m *Master) zadd(a []string) wire.Reply {
	v, fits := m.typed(a[1], Zset)
	if !fits {
		return wrongType
	}
	nx, xx, gt, i := false, false, false, 2
	for ; i < len(a) && slices.Contains([]string{"NX", "XX", "GT"}, a[i]); i++ {
		nx, xx, gt = nx || a[i] == "NX", xx || a[i] == "XX", gt || a[i] == "GT"
	}
	if len(a) <= i || (len(a)-i)%2 != 0 {
		return syntaxError
	}
	added := int64(0)
	for ; i < len(a); i += 2 {
		score, err := strconv.ParseFloat(a[i], 64)
		if err != nil {
			return notFloat
		}
		at := -1
		if v != nil {
			at = v.score(a[i+1])
		}
		switch {
		case at < 0 && xx, at >= 0 && (nx || gt && score <= v.Scores[at].Score):
			continue
		case at < 0:
			added++
		}
		if v == nil {
			v = &Value{Kind: Zset}
			m.Memory[a[1]] = v
		}
		v.setScore(a[i+1], score)
	}
	return Number(added)
}

func (m *Master) zscore(a []string) wire.Reply {
	v, fits := m.typed(a[1], Zset)
	if !fits {
		return wrongType
	}
	if v != nil {
		if i := v.score(a[2]); i >= 0 {
			return Text(decimal(v.Scores[i].Score))
		}
	}
	return null
}

func (m *Master) zmscore(a []string) wire.Reply {
	scores := List()
	for _, member := range a[2:] {
		one := m.zscore([]string{a[0], a[1], member})
		if one.Err != nil {
			return one
		}
		scores.Items = append(scores.Items, one)
	}
	return scores
}

func (m *Master) zrem(a []string) wire.Reply {
	v, fits := m.typed(a[1], Zset)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return Number(0)
	}
	n := len(v.Scores)
	v.Scores = slices.DeleteFunc(v.Scores, func(e Scored) bool { return slices.Contains(a[2:], e.Member) })
	return m.shrunk(a[1], n, len(v.Scores))
}

// shrunk removes a collection that has become empty.
func (m *Master) shrunk(key string, before, after int) wire.Reply {
	if after == 0 {
		delete(m.Memory, key)
	}
	return Number(int64(before - after))
}

func (m *Master) zcard(a []string) wire.Reply {
	v, fits := m.typed(a[1], Zset)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return Number(0)
	}
	return Number(int64(len(v.Scores)))
}

func (m *Master) zrange(a []string) wire.Reply {
	if len(a) > 4 && strings.EqualFold(a[4], "BYSCORE") {
		return m.zrangeByScore(a)
	}
	v, fits := m.typed(a[1], Zset)
	if !fits {
		return wrongType
	}
	from, err1 := strconv.Atoi(a[2])
	to, err2 := strconv.Atoi(a[3])
	if err1 != nil || err2 != nil {
		return notInteger
	}
	out := List()
	if v == nil {
		return out
	}
	n := len(v.Scores)
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

// zrangeByScore accepts the one form that the product sends: BYSCORE REV
// LIMIT 0 count WITHSCORES.
func (m *Master) zrangeByScore(a []string) wire.Reply {
	if len(a) != 10 || !strings.EqualFold(a[5], "REV") || !strings.EqualFold(a[6], "LIMIT") || a[7] != "0" || !strings.EqualFold(a[9], "WITHSCORES") {
		return syntaxError
	}
	most, err := strconv.Atoi(a[8])
	if err != nil {
		return notInteger
	}
	v, within, refused := m.within(a[1], a[3], a[2])
	if v == nil {
		return refused
	}
	out := List()
	for i := len(v.Scores) - 1; i >= 0 && most > 0; i-- {
		if e := v.Scores[i]; within(e.Score) {
			most--
			out.Items = append(out.Items, Text(e.Member), Text(decimal(e.Score)))
		}
	}
	return out
}

// within reads a range of scores; refused is the reply if there is no such zset.
func (m *Master) within(key, from, to string) (v *Value, in func(float64) bool, refused wire.Reply) {
	v, fits := m.typed(key, Zset)
	low, above, err1 := bound(from)
	high, below, err2 := bound(to)
	switch {
	case err1 != nil || err2 != nil:
		return nil, nil, refusal("ERR min or max is not a float")
	case !fits:
		return nil, nil, wrongType
	case v == nil:
		return nil, nil, List()
	}
	return v, func(score float64) bool {
		return (score > low || score == low && !above) && (score < high || score == high && !below)
	}, wire.Reply{}
}

func (m *Master) zcount(a []string) wire.Reply {
	v, within, refused := m.within(a[1], a[2], a[3])
	switch {
	case v == nil && refused.Err == nil:
		return Number(0)
	case v == nil:
		return refused
	}
	n := int64(0)
	for _, e := range v.Scores {
		if within(e.Score) {
			n++
		}
	}
	return Number(n)
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

func (m *Master) zremrangebyscore(a []string) wire.Reply {
	v, within, refused := m.within(a[1], a[2], a[3])
	switch {
	case v == nil && refused.Err == nil:
		return Number(0)
	case v == nil:
		return refused
	}
	n := len(v.Scores)
	v.Scores = slices.DeleteFunc(v.Scores, func(e Scored) bool { return within(e.Score) })
	return m.shrunk(a[1], n, len(v.Scores))
}

// zrangebyscore accepts LIMIT from the first one on.
func (m *Master) zrangebyscore(a []string) wire.Reply {
	v, within, refused := m.within(a[1], a[2], a[3])
	if refused.Err != nil {
		return refused
	}
	most := math.MaxInt
	switch {
	case len(a) == 7 && strings.EqualFold(a[4], "LIMIT") && a[5] == "0":
		var err error
		if most, err = strconv.Atoi(a[6]); err != nil {
			return notInteger
		}
	case len(a) != 4:
		return syntaxError
	}
	out := List()
	if v == nil {
		return out
	}
	for _, e := range v.Scores {
		if len(out.Items) < most && within(e.Score) {
			out.Items = append(out.Items, Text(e.Member))
		}
	}
	return out
}

func (m *Master) hset(a []string) wire.Reply {
	v, fits := m.typed(a[1], Hash)
	switch {
	case !fits:
		return wrongType
	case len(a) < 4 || len(a)%2 != 0:
		return refusal("ERR wrong number of arguments for 'hset' command")
	case v == nil:
		v = &Value{Kind: Hash}
		m.Memory[a[1]] = v
	}
	added := int64(0)
	for i := 2; i < len(a); i += 2 {
		if v.setField(a[i], a[i+1]) {
			added++
		}
	}
	return Number(added)
}

func (m *Master) hget(a []string) wire.Reply {
	r := m.hmget(a)
	if r.Err != nil {
		return r
	}
	return r.Items[0]
}

func (m *Master) hmget(a []string) wire.Reply {
	v, fits := m.typed(a[1], Hash)
	if !fits {
		return wrongType
	}
	out := List()
	for _, name := range a[2:] {
		item := null
		if v != nil {
			if i := v.field(name); i >= 0 {
				item = Text(v.Fields[i].Value)
			}
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func (m *Master) hgetall(a []string) wire.Reply {
	v, fits := m.typed(a[1], Hash)
	if !fits {
		return wrongType
	}
	out := List()
	if v != nil {
		for _, f := range v.Fields {
			out.Items = append(out.Items, Text(f.Name), Text(f.Value))
		}
	}
	return out
}

func (m *Master) hdel(a []string) wire.Reply {
	v, fits := m.typed(a[1], Hash)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return Number(0)
	}
	n := len(v.Fields)
	v.Fields = slices.DeleteFunc(v.Fields, func(f Field) bool { return slices.Contains(a[2:], f.Name) })
	return m.shrunk(a[1], n, len(v.Fields))
}

func (m *Master) hlen(a []string) wire.Reply {
	v, fits := m.typed(a[1], Hash)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return Number(0)
	}
	return Number(int64(len(v.Fields)))
}

package sim

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"redlockd/pool"
)

// What masters do with sorted sets and hashes.

func (s *server) zadd(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindZset)
	if !fits {
		return wrongType
	}
	nx, xx, gt, lt, i := false, false, false, false, 2
	for ; i < len(a); i++ {
		switch strings.ToUpper(a[i]) {
		case "NX":
			nx = true
			continue
		case "XX":
			xx = true
			continue
		case "GT":
			gt = true
			continue
		case "LT":
			lt = true
			continue
		}
		break
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
		case at < 0 && xx, at >= 0 && (nx || gt && score <= v.scores[at].score || lt && score >= v.scores[at].score):
			continue
		case at < 0:
			added++
		}
		if v == nil {
			v = &storedValue{kind: kindZset}
			s.memory[a[1]] = v
		}
		v.setScore(a[i+1], score)
	}
	return number(added)
}

func (s *server) zscore(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindZset)
	if !fits {
		return wrongType
	}
	if v != nil {
		if i := v.score(a[2]); i >= 0 {
			return text(decimal(v.scores[i].score))
		}
	}
	return null
}

func (s *server) zrem(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindZset)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return number(0)
	}
	n := len(v.scores)
	v.scores = slices.DeleteFunc(v.scores, func(e scored) bool { return slices.Contains(a[2:], e.member) })
	return s.shrunk(a[1], n, len(v.scores))
}

// shrunk removes a collection that has become empty.
func (s *server) shrunk(key string, before, after int) pool.Reply {
	if after == 0 {
		delete(s.memory, key)
	}
	return number(int64(before - after))
}

func (s *server) zcard(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindZset)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return number(0)
	}
	return number(int64(len(v.scores)))
}

func (s *server) zrange(a []string) pool.Reply {
	if len(a) > 4 && strings.EqualFold(a[4], "BYSCORE") {
		return s.zrangeByScore(a)
	}
	v, fits := s.typed(a[1], kindZset)
	if !fits {
		return wrongType
	}
	from, err1 := strconv.Atoi(a[2])
	to, err2 := strconv.Atoi(a[3])
	if err1 != nil || err2 != nil {
		return notInteger
	}
	out := list()
	if v == nil {
		return out
	}
	n := len(v.scores)
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to += n
	}
	for i := from; i <= min(to, n-1); i++ {
		out.Items = append(out.Items, text(v.scores[i].member))
		if len(a) > 4 {
			out.Items = append(out.Items, text(decimal(v.scores[i].score)))
		}
	}
	return out
}

// zrangeByScore knows the one form in which the product asks for it: BYSCORE REV
// LIMIT 0 most WITHSCORES.
func (s *server) zrangeByScore(a []string) pool.Reply {
	if len(a) != 10 || !strings.EqualFold(a[5], "REV") || !strings.EqualFold(a[6], "LIMIT") || a[7] != "0" || !strings.EqualFold(a[9], "WITHSCORES") {
		return syntaxError
	}
	most, err := strconv.Atoi(a[8])
	if err != nil {
		return notInteger
	}
	v, within, refused := s.within(a[1], a[3], a[2])
	if v == nil {
		return refused
	}
	out := list()
	for i := len(v.scores) - 1; i >= 0 && most > 0; i-- {
		if e := v.scores[i]; within(e.score) {
			most--
			out.Items = append(out.Items, text(e.member), text(decimal(e.score)))
		}
	}
	return out
}

// within reads a range of scores; without such a zset, what is answered then.
func (s *server) within(key, from, to string) (v *storedValue, in func(float64) bool, refused pool.Reply) {
	v, fits := s.typed(key, kindZset)
	low, above, err1 := bound(from)
	high, below, err2 := bound(to)
	switch {
	case err1 != nil || err2 != nil:
		return nil, nil, refusal("ERR min or max is not a float")
	case !fits:
		return nil, nil, wrongType
	case v == nil:
		return nil, nil, list()
	}
	return v, func(score float64) bool {
		return (score > low || score == low && !above) && (score < high || score == high && !below)
	}, pool.Reply{}
}

func (s *server) zcount(a []string) pool.Reply {
	v, within, refused := s.within(a[1], a[2], a[3])
	switch {
	case v == nil && refused.Err == nil:
		return number(0)
	case v == nil:
		return refused
	}
	n := int64(0)
	for _, e := range v.scores {
		if within(e.score) {
			n++
		}
	}
	return number(n)
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

func (s *server) zremrangebyscore(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindZset)
	low, above, err1 := bound(a[2])
	high, below, err2 := bound(a[3])
	switch {
	case err1 != nil || err2 != nil:
		return refusal("ERR min or max is not a float")
	case !fits:
		return wrongType
	case v == nil:
		return number(0)
	}
	n := len(v.scores)
	v.scores = slices.DeleteFunc(v.scores, func(e scored) bool {
		return (e.score > low || e.score == low && !above) && (e.score < high || e.score == high && !below)
	})
	return s.shrunk(a[1], n, len(v.scores))
}

// zrangebyscore knows LIMIT from the first one on.
func (s *server) zrangebyscore(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindZset)
	low, above, err1 := bound(a[2])
	high, below, err2 := bound(a[3])
	most := math.MaxInt
	var err3 error
	if len(a) > 4 {
		most, err3 = strconv.Atoi(a[len(a)-1])
	}
	switch {
	case err1 != nil || err2 != nil:
		return refusal("ERR min or max is not a float")
	case err3 != nil:
		return notInteger
	case len(a) != 4 && (len(a) != 7 || !strings.EqualFold(a[4], "LIMIT") || a[5] != "0"):
		return syntaxError
	case !fits:
		return wrongType
	case v == nil:
		return list()
	}
	out := list()
	for _, e := range v.scores {
		if len(out.Items) < most && (e.score > low || e.score == low && !above) && (e.score < high || e.score == high && !below) {
			out.Items = append(out.Items, text(e.member))
		}
	}
	return out
}

func (s *server) hset(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindHash)
	switch {
	case !fits:
		return wrongType
	case len(a) < 4 || len(a)%2 != 0:
		return refusal("ERR wrong number of arguments for 'hset' command")
	case v == nil:
		v = &storedValue{kind: kindHash}
		s.memory[a[1]] = v
	}
	added := int64(0)
	for i := 2; i < len(a); i += 2 {
		if v.setField(a[i], a[i+1]) {
			added++
		}
	}
	return number(added)
}

func (s *server) hget(a []string) pool.Reply {
	r := s.hmget(a)
	if r.Err != nil {
		return r
	}
	return r.Items[0]
}

func (s *server) hmget(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindHash)
	if !fits {
		return wrongType
	}
	out := list()
	for _, name := range a[2:] {
		item := null
		if v != nil {
			if i := v.field(name); i >= 0 {
				item = text(v.fields[i].value)
			}
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func (s *server) hgetall(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindHash)
	if !fits {
		return wrongType
	}
	out := list()
	if v != nil {
		for _, f := range v.fields {
			out.Items = append(out.Items, text(f.name), text(f.value))
		}
	}
	return out
}

func (s *server) hdel(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindHash)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return number(0)
	}
	n := len(v.fields)
	v.fields = slices.DeleteFunc(v.fields, func(f field) bool { return slices.Contains(a[2:], f.name) })
	return s.shrunk(a[1], n, len(v.fields))
}

func (s *server) hlen(a []string) pool.Reply {
	v, fits := s.typed(a[1], kindHash)
	switch {
	case !fits:
		return wrongType
	case v == nil:
		return number(0)
	}
	return number(int64(len(v.fields)))
}

package daemon

// promql_test.go reads the part of PromQL that alerts and dashboard use. It follows the labels
// through each expression: a metric, a label or a value that the daemon does not serve, and
// two sides that never match, are errors.

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric is one name of /metrics.
type metric struct {
	kind   string                     // counter, gauge or histogram
	labels map[string]map[string]bool // the values of each; nil: any
}

var (
	sampleLine  = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? `)
	sampleLabel = regexp.MustCompile(`(\w+)="((?:[^"\\\\]|\\\\.)*)"`)
	partOfName  = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// readMetrics reads what a scrape returns, and adds what Prometheus adds.
func readMetrics(text string) map[string]*metric {
	all, kinds := map[string]*metric{}, map[string]string{}
	add := func(name, kind string) *metric {
		if all[name] == nil {
			all[name] = &metric{kind, map[string]map[string]bool{"instance": nil, "job": nil}}
		}
		return all[name]
	}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 4 && words[1] == "TYPE" {
			kinds[words[2]] = words[3]
		}
		sample := sampleLine.FindStringSubmatch(line)
		if sample == nil {
			continue
		}
		kind := kinds[sample[1]]
		if kind == "" {
			kind = kinds[partOfName.ReplaceAllString(sample[1], "")]
		}
		m := add(sample[1], kind)
		for _, label := range sampleLabel.FindAllStringSubmatch(sample[2], -1) {
			if m.labels[label[1]] == nil {
				m.labels[label[1]] = map[string]bool{}
			}
			m.labels[label[1]][label[2]] = true
		}
	}
	add("up", "gauge")
	return all
}

func servedMetrics(t *testing.T) map[string]*metric {
	t.Helper()
	o := operate(t, "--embedded", "3", "--cluster-announce", "10.0.0.1:7379")
	o.await(t, "/readyz", http.StatusOK)
	_, text := o.get(t, "/metrics", "")
	return readMetrics(text)
}

// vector is what an expression returns.
type vector struct {
	labels map[string]bool
	number bool   // it is one number
	span   bool   // it has a time in brackets
	kind   string // of the metric, until a function was applied
}

// promReader reads one expression. Its methods panic with an error.
type promReader struct {
	tokens    []string
	served    map[string]*metric
	variables []string // of the dashboard
}

var (
	promToken = regexp.MustCompile(`^(?:"[^"\\\\]*"|[a-zA-Z_]\w*|\d+(?:\.\d+)?|=~|!~|!=|==|<=|>=|\[[^\]]*\]|[-+*/<>=(){},])`)
	promSpan  = regexp.MustCompile(`^\[(\d+[smhd]|\$__rate_interval)\]$`)
	dollar    = regexp.MustCompile(`\$(\w+)`)
)

// labelsOf returns the labels of what an expression returns.
func labelsOf(expr string, served map[string]*metric, variables ...string) (labels map[string]bool, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("%s: %v", expr, failed)
		}
	}()
	p := &promReader{served: served, variables: variables}
	for rest := strings.TrimSpace(expr); rest != ""; {
		token := promToken.FindString(rest)
		if token == "" {
			return nil, fmt.Errorf("%s: %s is not understood", expr, rest)
		}
		p.tokens, rest = append(p.tokens, token), strings.TrimSpace(rest[len(token):])
	}
	result := p.operators(0)
	p.instant(result)
	if len(p.tokens) > 0 {
		panic(fmt.Sprintf("%q is too much", p.tokens))
	}
	return result.labels, nil
}

func (p *promReader) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *promReader) next(wanted ...string) string {
	token := p.peek()
	if token == "" || len(wanted) > 0 && !slices.Contains(wanted, token) {
		panic(fmt.Sprintf("%q in place of %q", token, wanted))
	}
	p.tokens = p.tokens[1:]
	return token
}

// precedence of operators: those of the later rows bind more closely.
var precedence = [][]string{{"or"}, {"and", "unless"}, {"==", "!=", "<", ">", "<=", ">="}, {"+", "-"}, {"*", "/"}}

func (p *promReader) operators(row int) vector {
	if row == len(precedence) {
		return p.operand()
	}
	left := p.operators(row + 1)
	for slices.Contains(precedence[row], p.peek()) {
		operator := p.next()
		var on []string
		if p.peek() == "on" {
			p.next()
			on = p.names()
		}
		left = p.combine(left, operator, p.operators(row+1), on)
	}
	return left
}

// combine returns the labels of the left side, which must match the right one.
func (p *promReader) combine(left vector, operator string, right vector, on []string) vector {
	p.instant(left)
	p.instant(right)
	set := slices.Contains([]string{"or", "and", "unless"}, operator)
	switch {
	case (left.number || right.number) && (set || len(on) > 0):
		panic(operator + " beside a number")
	case left.number:
		return right
	case right.number:
		return left
	case on == nil && !maps.Equal(left.labels, right.labels):
		panic(fmt.Sprintf("%s never matches: %v and %v", operator, left.labels, right.labels))
	}
	for _, label := range on {
		if !left.labels[label] || !right.labels[label] {
			panic("on (" + label + ") that a side does not have")
		}
	}
	return left
}

// instant refuses what Prometheus cannot compare, and a counter as such, which only ever grows.
func (p *promReader) instant(v vector) {
	if v.span || v.kind == "counter" || v.kind == "histogram" {
		panic(fmt.Sprintf("a %s without rate or increase, or a time in brackets beside them", v.kind))
	}
}

func (p *promReader) operand() vector {
	token := p.next()
	switch {
	case token == "(":
		v := p.operators(0)
		p.next(")")
		return v
	case token[0] >= '0' && token[0] <= '9':
		return vector{number: true}
	case slices.Contains([]string{"sum", "max", "min", "avg", "count"}, token):
		return p.aggregate()
	case p.peek() == "(":
		return p.call(token)
	}
	return p.selector(token)
}

// aggregate reads what follows sum and the like.
func (p *promReader) aggregate() vector {
	result := vector{labels: map[string]bool{}}
	var by []string
	if p.peek() == "by" {
		p.next()
		by = p.names()
	}
	p.next("(")
	v := p.operators(0)
	p.next(")")
	p.instant(v)
	for _, label := range by {
		if !v.labels[label] {
			panic(fmt.Sprintf("by (%s) of %v", label, v.labels))
		}
		result.labels[label] = true
	}
	return result
}

// call reads the arguments of a function.
func (p *promReader) call(function string) vector {
	p.next("(")
	defer p.next(")")
	switch function {
	case "rate", "increase":
		v := p.operators(0)
		if !v.span || v.kind != "counter" && v.kind != "histogram" {
			panic(fmt.Sprintf("%s of a %s, with a time in brackets: %t", function, v.kind, v.span))
		}
		return vector{labels: v.labels}
	case "histogram_quantile":
		if share := p.operators(0); !share.number {
			panic("a quantile that is no number")
		}
		p.next(",")
		v := p.operators(0)
		p.instant(v)
		if !v.labels["le"] {
			panic("a quantile without le")
		}
		rest := maps.Clone(v.labels)
		delete(rest, "le")
		return vector{labels: rest}
	}
	panic("the function " + function + " is not understood")
}

// names reads labels in brackets.
func (p *promReader) names() (all []string) {
	p.next("(")
	for p.peek() != ")" {
		all = append(all, p.next())
		if p.peek() != ")" {
			p.next(",")
		}
	}
	p.next(")")
	return all
}

// selector reads what follows the name of a metric.
func (p *promReader) selector(name string) vector {
	m := p.served[name]
	if m == nil {
		panic("the metric " + name + " is not served")
	}
	v := vector{labels: map[string]bool{}, kind: m.kind}
	for label := range m.labels {
		v.labels[label] = true
	}
	if p.peek() == "{" {
		p.next()
		for p.peek() != "}" {
			p.matcher(name, m)
			if p.peek() != "}" {
				p.next(",")
			}
		}
		p.next("}")
	}
	if strings.HasPrefix(p.peek(), "[") {
		if v.span = true; !promSpan.MatchString(p.peek()) {
			panic(p.peek() + " is no time")
		}
		p.next()
	}
	return v
}

// matcher reads one condition on a label.
func (p *promReader) matcher(name string, m *metric) {
	label := p.next()
	operator := p.next("=", "=~", "!=", "!~")
	value := strings.Trim(p.next(), `"`)
	values, there := m.labels[label]
	if !there {
		panic(name + " has no label " + label)
	}
	for _, variable := range dollar.FindAllStringSubmatch(value, -1) {
		if !slices.Contains(p.variables, variable[1]) {
			panic("there is no variable " + variable[1])
		}
	}
	if values != nil && !values[value] && !strings.Contains(operator, "~") {
		panic(fmt.Sprintf("%s has no %s %q", name, label, value))
	}
}

func TestPromReader_FindsWhatIsWrong(t *testing.T) {
	served := readMetrics(`# HELP a_total help
# TYPE a_total counter
a_total{reason="late"} 1
# TYPE g gauge
g{master="a",state="voting"} 1
g{master="a",state="down"} 0
# TYPE b gauge
b{master="a"} 0
# TYPE t histogram
t_bucket{le="0.1"} 1
t_bucket{le="+Inf"} 1
t_sum 1
t_count 1
`)
	for expr, want := range map[string]string{
		`sum by (reason) (rate(a_total{instance=~"$instance"}[5m])) > 0.1`:                                   "reason",
		`g{state="voting"} == 0 and on (instance, master) b == 1`:                                            "instance job master state",
		`histogram_quantile(0.9, sum by (le) (rate(t_bucket[$__rate_interval])))`:                            "",
		`histogram_quantile(0.9, rate(t_bucket[5m])) > 1 or histogram_quantile(0.5, rate(t_bucket[5m])) > 1`: "instance job",
		`b / b > 0.9`:           "instance job master",
		`max(g)`:                "",
		`up{job="x"} == 0`:      "instance job",
		`(b - 2 * b) < 5`:       "instance job master",
		`increase(t_count[1h])`: "instance job",
	} {
		labels, err := labelsOf(expr, served, "instance")
		if got := strings.Join(slices.Sorted(maps.Keys(labels)), " "); err != nil || got != want {
			t.Errorf("%s has the labels %q, want %q: %v", expr, got, want, err)
		}
	}
	for _, wrong := range []string{
		"", "gone", "a_total > 1", "rate(a_total)", "rate(g[5m])", "a_total[5m]", "rate(a_total[5 min])", `g{stat="voting"}`, `g{state="votes"}`,
		"sum by (gone) (g)", "g < b", "g and on (state) b", "g == ", "(g", "g)", "sum(g", "histogram_quantile(0.9, b)", "histogram_quantile(b, rate(t_bucket[5m]))",
		`g{instance=~"$gone"}`, "t_bucket", "rate(rate(a_total[5m])[5m])", "absent(g)", "g and 1", "g # b", `g{state="voting"`, "sum by state (g)",
	} {
		if _, err := labelsOf(wrong, served, "instance"); err == nil {
			t.Errorf("%s is not noticed", wrong)
		}
	}
}

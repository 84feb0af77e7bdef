package contract

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// request sends one to the admin endpoint: "user:password@/path body". It shows the
// status and the body: JSON with the types of its values, metrics without values.
func (p *process) request(t *testing.T, method, line string) string {
	t.Helper()
	target, body, _ := strings.Cut(line, " ")
	login, path, hasLogin := strings.Cut(target, "@")
	if !hasLogin {
		path = target
	}
	r, err := http.NewRequestWithContext(t.Context(), method, p.admin+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if user, password, ok := strings.Cut(login, ":"); hasLogin && ok {
		r.SetBasicAuth(user, password)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	kind := response.Header.Get("Content-Type")
	text := fmt.Sprintf("%d %s", response.StatusCode, kind)
	switch {
	case strings.HasPrefix(kind, "application/json"):
		text += "\n" + jsonShape(t, json.NewDecoder(response.Body))
	case path == "/metrics" && response.StatusCode == http.StatusOK:
		text += "\n" + metricNames(t, response.Body)
	case strings.HasPrefix(kind, "text/plain"):
		body, _ := io.ReadAll(response.Body)
		text += "\n" + settleText(strings.TrimRight(string(body), "\n"))
	}
	return strings.ReplaceAll(text, "\n", "\n    ")
}

var jsonCounts = []string{"trips", "times"} // numbers by the bounds that have some

// jsonShape shows the keys of a JSON value and the types of their values.
func jsonShape(t *testing.T, in *json.Decoder) string {
	t.Helper()
	var value any
	if err := in.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return shapeOf(value, "")
}

func shapeOf(value any, indent string) string {
	switch v := value.(type) {
	case map[string]any:
		var lines []string
		for key, inner := range v {
			text := shapeOf(inner, indent+"  ")
			if slices.Contains(jsonCounts, key) {
				text = "numbers"
			}
			lines = append(lines, indent+"  "+key+": "+text)
		}
		slices.Sort(lines)
		return "{\n" + strings.Join(lines, "\n") + "\n" + indent + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + shapeOf(v[0], indent) + "]"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

var (
	sample     = regexp.MustCompile(`^(\w+)(\{.*\})? `)
	labelValue = regexp.MustCompile(`(\w+)="[^"]*"`)
)

// metricNames shows metrics without values, and labels without values where they are
// not one of a few words. Those of Go and of the process are not redlockd's.
func metricNames(t *testing.T, in io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := sample.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "#") {
			line = m[1] + labelValue.ReplaceAllStringFunc(m[2], func(label string) string {
				if name, _, _ := strings.Cut(label, "="); !slices.Contains([]string{"state", "vote", "reason", "quantile"}, name) {
					return name
				}
				return label
			})
		}
		if strings.Contains(line, "redlockd_") && !slices.Contains(names, line) {
			names = append(names, line)
		}
	}
	return strings.Join(names, "\n")
}

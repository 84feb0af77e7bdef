package daemon

// Tests that Grafana can import the dashboard, and that each of its panels shows something.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard has the fields of Grafana's that ours uses.
type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	Refresh       string   `json:"refresh"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Templating struct {
		List []dashboardVariable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type dashboardVariable struct {
	Name       string      `json:"name"`
	Type       string      `json:"type"`
	Label      string      `json:"label"`
	Query      any         `json:"query"` // a text, or a query of Prometheus
	Datasource *datasource `json:"datasource,omitempty"`
	IncludeAll bool        `json:"includeAll,omitempty"`
	Multi      bool        `json:"multi,omitempty"`
	AllValue   string      `json:"allValue,omitempty"`
	Refresh    int         `json:"refresh,omitempty"`
	Current    *struct {
		Text  string `json:"text"`
		Value string `json:"value"`
	} `json:"current,omitempty"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID         int        `json:"id"`
	Title      string     `json:"title"`
	Type       string     `json:"type"`
	Datasource datasource `json:"datasource"`
	Place      place      `json:"gridPos"`
	Fields     struct {
		Defaults struct {
			Unit string   `json:"unit"`
			Min  *float64 `json:"min,omitempty"`
		} `json:"defaults"`
		Overrides []any `json:"overrides"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID  string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

// place is where a panel stands, on a grid of 24 columns.
type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

func (p place) overlaps(o place) bool {
	return p.X < o.X+o.W && o.X < p.X+p.W && p.Y < o.Y+o.H && o.Y < p.Y+p.H
}

// decodeDashboard reads a dashboard and refuses other fields. Grafana tells "Expr" from
// "expr" and Go does not, so the fields are compared, too.
func decodeDashboard(text string) (d dashboard, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, err
	}
	again, err := json.Marshal(d)
	if err != nil {
		return d, err
	}
	var given, read any
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return d, err
	}
	if err := json.Unmarshal(again, &read); err != nil {
		return d, err
	}
	if !reflect.DeepEqual(given, read) {
		return d, fmt.Errorf("a field is missing, or written with other capitals, in place of\n%s", bytes.TrimSpace(again))
	}
	return d, nil
}

var (
	panelUnits  = []string{"short", "ops", "s"}
	legendLabel = regexp.MustCompile(`\{\{(.*?)\}\}`)
	labelQuery  = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
)

// wrong returns what Grafana would refuse, or would show nothing for.
func (d *dashboard) wrong(served map[string]*metric) (wrong []string) {
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	variables, source := []string{}, ""
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "datasource" && v.Query == "prometheus" {
			source = "${" + v.Name + "}"
		} else if query, _ := v.Query.(map[string]any); v.Type != "query" || v.Datasource == nil || *v.Datasource != (datasource{"prometheus", source}) {
			note("variable %s: %+v", v.Name, v)
		} else if match := labelQuery.FindStringSubmatch(fmt.Sprint(query["query"])); match == nil || served[match[1]] == nil {
			note("variable %s: %v", v.Name, query)
		} else if _, there := served[match[1]].labels[match[2]]; !there {
			note("variable %s: %v", v.Name, query)
		}
	}
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" || d.SchemaVersion < 1 || source == "" {
		note("uid %q, title %q, schema %d, data source %q", d.UID, d.Title, d.SchemaVersion, source)
	}
	ids := map[int]bool{}
	for i, p := range d.Panels {
		if p.ID < 1 || ids[p.ID] || p.Title == "" || p.Type != "timeseries" || len(p.Targets) == 0 || p.Datasource != (datasource{"prometheus", source}) || !slices.Contains(panelUnits, p.Fields.Defaults.Unit) {
			note("panel %d %q: %+v", p.ID, p.Title, p)
		}
		ids[p.ID] = true
		if at := p.Place; at.H < 1 || at.W < 1 || at.X < 0 || at.Y < 0 || at.X+at.W > 24 {
			note("panel %q stands at %+v", p.Title, at)
		}
		for _, other := range d.Panels[:i] {
			if p.Place.overlaps(other.Place) {
				note("panels %q and %q overlap", p.Title, other.Title)
			}
		}
		p.wrongTargets(served, variables, func(format string, args ...any) { note(p.Title+": "+format, args...) })
	}
	return wrong
}

func (p *panel) wrongTargets(served map[string]*metric, variables []string, note func(string, ...any)) {
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if refs[target.RefID] || len(target.RefID) != 1 {
			note("query %q", target.RefID)
		}
		refs[target.RefID] = true
		labels, err := labelsOf(target.Expr, served, variables...)
		if err != nil {
			note("%v", err)
			continue
		}
		for _, label := range legendLabel.FindAllStringSubmatch(target.Legend, -1) {
			if !labels[label[1]] {
				note("%s shows the label %s of %v", target.Legend, label[1], labels)
			}
		}
	}
}

func TestDashboard_CanBeImported(t *testing.T) {
	board, err := decodeDashboard(file(t, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	served := servedMetrics(t)
	for _, wrong := range board.wrong(served) {
		t.Error(wrong)
	}
	if len(board.Panels) < 10 {
		t.Errorf("%d panels", len(board.Panels))
	}
	for _, change := range [][2]string{
		{`"expr"`, `"Expr"`}, {`"expr"`, `"exprs"`}, {`"id": 2`, `"id": 1`}, {`"x": 8`, `"x": 7`}, {`"w": 8`, `"w": 25`}, {`"unit": "ops"`, `"unit": "op"`},
		{`"refId": "B"`, `"refId": "A"`}, {`"query": "prometheus"`, `"query": "loki"`}, {`"uid": "${source}"`, `"uid": "source"`},
		{"redlockd_masters_voting", "redlockd_master_voting"}, {`outcome=\"granted\"`, `outcome=\"won\"`}, {"{{master}}", "{{name}}"},
		{"label_values(redlockd_build_info", "label_values(redlockd_build"}, {"$instance", "$daemon"}, {"sum by (outcome)", "sum by (result)"}, {"[$__rate_interval]", "[$__interval]"},
	} {
		changed := strings.Replace(file(t, "dashboard.json"), change[0], change[1], 1)
		if changed == file(t, "dashboard.json") {
			t.Errorf("the dashboard has no %s", change[0])
		}
		if board, err := decodeDashboard(changed); err == nil && len(board.wrong(served)) == 0 {
			t.Errorf("%s in place of %s is not noticed", change[1], change[0])
		}
	}
}

package prometheus

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exported are the labels of each metric that is exported, with their values.
type exported map[string]map[string][]string

var (
	sample   = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label    = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
	selector = regexp.MustCompile(`\b((?:latchkey|db_client)_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!=|!~|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`^[a-z_]+$`)
)

func exportedBy(text string) exported {
	all := make(exported)
	for _, s := range sample.FindAllStringSubmatch(text, -1) {
		if all[s[1]] == nil {
			all[s[1]] = map[string][]string{"job": nil, "instance": nil} // which Prometheus adds
		}
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			all[s[1]][l[1]] = append(all[s[1]][l[1]], l[2])
		}
	}
	return all
}

// ours are the labels whose values are all exported from the start, if only with 0.
var ours = []string{"latchkey_how", "latchkey_state"}

// check checks that a query asks for what is exported: metrics, labels, and the values of labels.
func (e exported) check(t *testing.T, query string) {
	t.Helper()
	metrics := selector.FindAllStringSubmatch(query, -1)
	// The labels by which a query groups also begin like metrics.
	metrics = slices.DeleteFunc(metrics, func(m []string) bool { return e.isLabel(m[1]) })
	if len(metrics) == 0 {
		t.Errorf("%s asks for no metric", query)
	}
	for _, m := range metrics {
		labels, ok := e[m[1]]
		if !ok {
			t.Errorf("%s asks for %s, which is not exported", query, m[1])
			continue
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			values, ok := labels[l[1]]
			if !ok {
				t.Errorf("%s asks for the label %s, which %s does not have", query, l[1], m[1])
			}
			for _, value := range strings.Split(l[3], "|") {
				if slices.Contains(ours, l[1]) && word.MatchString(value) && !slices.Contains(values, value) {
					t.Errorf("%s asks for %s=%q, which %s does not have", query, l[1], value, m[1])
				}
			}
		}
		for _, g := range grouping.FindAllStringSubmatch(query, -1) {
			for _, name := range strings.Split(g[1], ",") {
				if _, ok := labels[strings.TrimSpace(name)]; !ok {
					t.Errorf("%s groups by %s, which %s does not have", query, name, m[1])
				}
			}
		}
	}
}

func (e exported) isLabel(name string) bool {
	for labels := range maps.Values(e) {
		if _, ok := labels[name]; ok {
			return true
		}
	}
	return false
}

// all exports everything at least once: what real requests cause, and what happens rarely.
func all(t *testing.T) exported {
	t.Helper()
	s := newSite(t)
	s.visit()
	s.tellRareEvents()
	return exportedBy(s.text())
}

// The alerts and the dashboard ask only for metrics and labels that are exported.
func TestQueriesAskForWhatIsExported(t *testing.T) {
	t.Parallel()
	e := all(t)
	for name, queries := range map[string][]string{"alerts.yml": alertQueries(t), "dashboard.json": dashboardQueries(t)} {
		if len(queries) < 6 {
			t.Errorf("%s has %d queries", name, len(queries))
		}
		for _, q := range queries {
			e.check(t, q)
		}
	}
}

// Each metric is in the table of the page, and the page names no other.
func TestPageListsTheMetrics(t *testing.T) {
	t.Parallel()
	page := read(t, "../../middleware/otel/README.md")
	for name := range all(t) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if base != "target_info" && !strings.Contains(page, "`"+base+"`") {
			t.Errorf("the page does not list %s", base)
		}
	}
	e := all(t)
	for _, m := range regexp.MustCompile("`((?:latchkey|db_client)_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		if e[m[1]] == nil && e[m[1]+"_count"] == nil && !e.isLabel(m[1]) {
			t.Errorf("the page lists %s, which is not exported", m[1])
		}
	}
}

package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// dashboardQueries returns the queries of the dashboard's panels, with its variables replaced as Grafana does.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title, Type, Description string
			Datasource               struct{ Type, UID string }
			GridPos                  struct{ X, Y, W, H int }
			FieldConfig              struct{ Defaults struct{ Unit string } }
			Targets                  []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../middleware/otel/grafana/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource.UID != "${datasource}" || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("panel %q: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			q := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(target.Expr)
			if strings.Contains(q, "$") || target.LegendFormat == "" {
				t.Errorf("panel %q: %s, %q", p.Title, q, target.LegendFormat)
			}
			perSecond := strings.Contains(q, "rate(") && !strings.Contains(q, "histogram_quantile(") && !strings.Contains(q, " / ")
			if unit := p.FieldConfig.Defaults.Unit; perSecond != strings.HasSuffix(unit, "ps") { // such as reqps
				t.Errorf("panel %q has the unit %s, and a query that is per second: %v: %s", p.Title, unit, perSecond, q)
			}
			queries = append(queries, q)
		}
	}
	return queries
}

// rules are the parts of a file of rules that these tests need.
type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var all rules
	if err := yaml.Unmarshal([]byte(read(t, "../../middleware/otel/prometheus/alerts.yml")), &all); err != nil {
		t.Fatal(err)
	}
	return all.Groups[0].Rules
}

func alertQueries(t *testing.T) (queries []string) {
	t.Helper()
	for _, r := range alerts(t) {
		queries = append(queries, r.Expr)
	}
	return queries
}

// Prometheus understands the dashboard's queries: promtool reads them as rules.
func TestDashboardIsUnderstood(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	file.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, q := range dashboardQueries(t) {
		fmt.Fprintf(&file, "      - record: query:%d\n        expr: %q\n", i, q)
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", path)
}

package prometheus

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// program returns the path of promtool or prometheus: from the PATH, or where .ci/prometheus has put it. It is empty
// if there is none.
func program(name string) string {
	for _, path := range []string{name, filepath.Join("../../bin/prometheus", name)} {
		if found, err := exec.LookPath(path); err == nil {
			found, _ = filepath.Abs(found)
			return found
		}
	}
	return ""
}

// Tests with promtool or prometheus are skipped if the program is missing. This test fails then, so that the
// skips are noticed.
func TestPrometheusIsThere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"promtool", "prometheus"} {
		if program(name) == "" {
			t.Errorf("there is no %s: the alerts, the dashboard and the exported metrics are not checked. Run .ci/prometheus, which installs nothing", name)
		}
	}
}

// promtool runs promtool with an input, and fails the test if promtool does not succeed.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	path := program("promtool")
	if path == "" {
		t.Skip("there is no promtool")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// promtool can read the exported metrics, and accepts their names, units and descriptions.
func TestPrometheusLikesWhatIsExported(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.visit()
	promtool(t, s.text(), "check", "metrics")
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "../../middleware/otel/prometheus/alerts.yml")
	promtool(t, "", "test", "rules", "../../middleware/otel/prometheus/alerts_test.yml")
}

// Each alert is tested.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	alerts, tests := read(t, "../../middleware/otel/prometheus/alerts.yml"), read(t, "../../middleware/otel/prometheus/alerts_test.yml")
	n := 0
	for line := range strings.Lines(alerts) {
		if _, name, ok := strings.Cut(line, "- alert: "); ok {
			n++
			if !strings.Contains(tests, strings.TrimSpace(name)) {
				t.Errorf("%s is not tested", strings.TrimSpace(name))
			}
		}
	}
	if n < 6 {
		t.Errorf("%d alerts, want at least 6", n)
	}
}

// Each alert leads to a place of a page that says what to do.
func TestEachAlertHasARunbook(t *testing.T) {
	t.Parallel()
	const repository = "https://github.com/a2139e8d/latchkey/blob/main/"
	for _, rule := range alerts(t) {
		path, ok := strings.CutPrefix(rule.Annotations["runbook_url"], repository)
		path, anchor, _ := strings.Cut(path, "#")
		if !ok || !strings.HasSuffix(path, ".md") {
			t.Errorf("the runbook of %s is %q", rule.Alert, rule.Annotations["runbook_url"])
			continue
		}
		if page := read(t, "../../"+path); anchor != "" && !slices.Contains(anchors(page), anchor) {
			t.Errorf("the runbook of %s: %s has no #%s", rule.Alert, path, anchor)
		}
	}
}

// anchors are the places of a page to which a link may lead: headings, as GitHub names them, and names that are given.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		all = append(all, regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(name, ""))
	}
	for _, given := range regexp.MustCompile(`<a id="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		all = append(all, given[1])
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

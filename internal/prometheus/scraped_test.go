package prometheus

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startPrometheus starts a Prometheus that scrapes a site every 200 ms, and returns its address.
func startPrometheus(t *testing.T, s *site) string {
	t.Helper()
	path := program("prometheus")
	if path == "" {
		t.Skip("there is no prometheus")
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nscrape_configs:\n  - job_name: shop\n    static_configs:\n      - targets: [%q]\n",
		strings.TrimPrefix(s.URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	address := make(chan string, 1)
	go func() { // until the log ends
		listening := regexp.MustCompile(`"?Listening on"? address=(127\.0\.0\.1:\d+)`)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case address <- "http://" + m[1]:
				default: // once is enough
				}
			}
		}
		close(address)
	}()
	found, ok := <-address
	if !ok {
		t.Fatal("Prometheus has ended")
	}
	return found
}

// query returns how many series a query finds, and one of them.
func query(prometheus, q string) (series int, one string, err error) {
	res, err := http.Get(prometheus + "/api/v1/query?query=" + url.QueryEscape(q))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  []any
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, "", err
	}
	if answer.Status != "success" {
		return 0, "", fmt.Errorf("%s: %s", q, answer.Error)
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" { // a quantile of nothing
			series, one = series+1, fmt.Sprint(r.Metric, " ", r.Value[1])
		}
	}
	return series, one, nil
}

// Each query of the dashboard finds something in a real Prometheus, which scrapes a program with real requests. With
// -v the test prints what the dashboard would show.
func TestDashboardOnRealData(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	prometheus := startPrometheus(t, s)
	queries := dashboardQueries(t)
	missing := map[string]string{}
	for ended := time.Now().Add(2 * time.Minute); ; {
		s.visit()
		s.tellRareEvents()
		clear(missing)
		for _, q := range queries {
			if n, _, err := query(prometheus, q); n == 0 {
				missing[q] = fmt.Sprint(err)
			}
		}
		if len(missing) == 0 {
			break
		}
		if time.Now().After(ended) {
			t.Fatalf("%d queries find nothing: %v", len(missing), missing)
		}
	}
	for _, q := range queries {
		n, one, _ := query(prometheus, q)
		t.Logf("%s\n\t%d series, one is %s", q, n, one)
	}
}

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// The rights on the page are enough for all commands, on one server and on a cluster: see TestCluster.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes", "--maxmemory", "100mb")
	rightsSuffice(t, []*redistest.Server{s}, opened(t, s.URL, store.Options{}))
	must(t, "redis://operator:pw@"+s.Addr, "doctor")
}

func rightsSuffice(t *testing.T, servers []*redistest.Server, st *store.Store) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := func(expression string) (all []any) {
		line := regexp.MustCompile(expression).FindStringSubmatch(string(page))
		if line == nil {
			t.Fatalf("the page has no %s", expression)
		}
		for _, word := range strings.Fields(line[1]) {
			all = append(all, strings.ReplaceAll(strings.Trim(word, "`,"), "PASSWORD", "pw"))
		}
		return all
	}
	allowed := func(rules []any) {
		for _, s := range servers {
			s.Do(t, "ACL", append([]any{"SETUSER"}, rules...)...)
		}
	}
	allowed(rules(`(?m)^    ACL SETUSER (.*)$`))
	url := "redis://operator:pw@" + servers[0].Addr
	isCluster := len(servers) > 1
	if isCluster {
		allowed(append([]any{"operator"}, rules("(?m)^On a cluster it needs (`.*`) as well")...))
	}
	for _, s := range servers {
		s.Do(t, "ACL", "LOG", "RESET")
	}
	begin(t, st, second, "{}")
	hold(t, st, second, "")
	one, two := login(t, st, "eve", "", 1), login(t, st, "eve", "", 2)
	for _, args := range [][]string{{"list", "--user", "eve"}, {"show", second, "--values"}, {"show", one, "--values"},
		{"locks"}, {"stats"}, {"end", second}, {"end", one}, {"end", "--user", "eve"}} {
		must(t, url, args...)
	}
	fails(t, call(t, url, "show", two), exitError, "it was ended")
	found := diagnosed(t, url)
	if finds(t, found, "acl", note, "the user operator", "--acl-user"); len(found["acl"]) != len(servers) {
		t.Errorf("of rights: %+v", found["acl"])
	}
	removed := []any{"operator"}
	for _, rule := range rules("(?s)does not need (`[^`]*`)") {
		removed = append(removed, strings.Replace(rule.(string), "+", "-", 1))
	}
	allowed(removed)
	login(t, st, "eve", "", 3)
	for _, args := range [][]string{{"list", "--user", "eve"}, {"locks"}, {"stats"}} {
		must(t, url, args...)
	}
	for _, s := range servers {
		for _, refused := range s.Do(t, "ACL", "LOG").([]any) {
			text := fmt.Sprintf("%s", refused)
			// Rueidis can do without these: whether it is a cluster, and its own name.
			if (isCluster || !strings.Contains(text, "cluster|s")) && !strings.Contains(text, "client|setinfo") {
				t.Errorf("refused: %s", text)
			}
		}
	}
}

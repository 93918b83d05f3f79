package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/rueidis"
)

// The rights on the page are enough for all commands, on a server and on a cluster.
func TestLeastRights(t *testing.T) {
	t.Parallel()
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
	var removed []any
	for _, rule := range rules("(?s)does not need (`[^`]*`)") {
		removed = append(removed, strings.Replace(rule.(string), "+", "-", 1))
	}
	for name, servers := range map[string][]*redistest.Server{
		"one server": {redistest.Real(t, "--appendonly", "yes", "--maxmemory", "100mb")},
		"a cluster":  redistest.NewCluster(t, 2, 0).Nodes,
	} {
		for _, s := range servers {
			s.Do(t, "ACL", append([]any{"SETUSER"}, rules(`(?m)^    ACL SETUSER (.*)$`)...)...)
			if name != "one server" {
				s.Do(t, "ACL", append([]any{"SETUSER", "operator"}, rules("(?m)^On a cluster it needs (`.*`) as well")...)...)
			}
			s.Do(t, "ACL", "LOG", "RESET")
		}
		st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{servers[0].Addr}}, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		begin(t, st, first, "{}")
		hold(t, st, first, "")
		one, two := login(t, st, "ann", "", 1), login(t, st, "ann", "", 2)
		for _, args := range [][]string{{"list", "--user", "ann"}, {"show", first, "--values"}, {"show", one, "--values"},
			{"locks"}, {"stats"}, {"end", first}, {"end", one}, {"end", "--user", "ann"}} {
			must(t, "redis://operator:pw@"+servers[0].Addr, args...)
		}
		fails(t, call(t, "redis://operator:pw@"+servers[0].Addr, "show", two), exitError, "it was ended")
		found := diagnosed(t, "redis://operator:pw@"+servers[0].Addr)
		if finds(t, found, "acl", note, "the user operator", "--acl-user"); len(found["acl"]) != len(servers) {
			t.Errorf("%s: of rights: %+v", name, found["acl"])
		}
		if name == "one server" { // a cluster without replicas is not well
			must(t, "redis://operator:pw@"+servers[0].Addr, "doctor")
		}
		for _, s := range servers {
			s.Do(t, "ACL", append([]any{"SETUSER", "operator"}, removed...)...)
		}
		login(t, st, "ann", "", 3)
		for _, args := range [][]string{{"list", "--user", "ann"}, {"locks"}, {"stats"}} {
			must(t, "redis://operator:pw@"+servers[0].Addr, args...)
		}
		for _, s := range servers {
			for _, refused := range s.Do(t, "ACL", "LOG").([]any) {
				text := fmt.Sprintf("%s", refused)
				// Rueidis can do without these: whether it is a cluster, and its own name.
				if !(name == "one server" && strings.Contains(text, "cluster|s")) && !strings.Contains(text, "client|setinfo") {
					t.Errorf("%s: refused: %s", name, text)
				}
			}
		}
	}
}

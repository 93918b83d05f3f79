package rueidisstore

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The rights in the package's comment are enough, on a server and on a cluster, also to wait.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("rueidisstore.go")
	if err != nil {
		t.Fatal(err)
	}
	rights := func(name string) []any {
		line := regexp.MustCompile(`(?m)^//\t` + name + ` +(.*)$`).FindStringSubmatch(string(page))
		if line == nil {
			t.Fatalf("no rights for %q", name)
		}
		var all []any
		for _, word := range strings.Fields(line[1]) {
			if strings.ContainsAny(word[:1], "+&~-") || strings.HasPrefix(word, "reset") {
				all = append(all, strings.TrimSuffix(word, ","))
			}
		}
		return all
	}
	for name, servers := range map[string][]*redistest.Server{
		"one server": {redistest.Real(t)},
		"cluster":    redistest.NewCluster(t, 2, 0).Nodes,
	} {
		args := append([]any{"SETUSER", "app", "on", ">secret"}, rights("one server")...)
		if args = append(args, rights("to be woken")...); name == "cluster" {
			args = append(args, rights(name)...)
		}
		for _, s := range servers {
			s.Do(t, "ACL", args...)
			s.Do(t, "ACL", "LOG", "RESET")
		}
		o := at(servers...)
		o.Username, o.Password = "app", "secret"
		a, b := openStore(t, o, patient), openStore(t, o, patient)
		if err := a.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		create(t, a, "id", "old")
		handOver(t, a, b, "id", servers)
		large := strings.Repeat("x", 100<<10)
		if err := save(t, a, "id", large); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantData(t, b, "id", large)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		for _, s := range servers {
			for _, refused := range s.Do(t, "ACL", "LOG").([]any) {
				text := fmt.Sprintf("%s", refused)
				// Rueidis can do without these: whether it is a cluster, and its own name.
				if !strings.Contains(text, "cluster|s") && !strings.Contains(text, "client|setinfo") {
					t.Errorf("%s: refused: %s", name, text)
				}
			}
		}
	}
}

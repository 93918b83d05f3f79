package clustertest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// Rights returns the rights that the comment in a file of Go names for some topologies, in the form of ACL
// SETUSER.
func Rights(t *testing.T, file string, topologies ...string) (all []any) {
	t.Helper()
	for _, topology := range topologies {
		line := regexp.MustCompile(`(?m)^//\t` + topology + ` +(.*)$`).FindString(read(t, file))
		found := rightsIn(line)
		if len(found) == 0 {
			t.Fatalf("%s has no rights for %q", file, topology)
		}
		for _, right := range found {
			all = append(all, right)
		}
	}
	return all
}

// RightsSuffice checks, on one server, that Redis denies nothing to a user with the rights that the comment in a
// file names, even while the user waits for a session. It also checks that store/REDIS.md has each of these
// rights.
func RightsSuffice(t *testing.T, open Open, file string) {
	LeastRights(t, open, []*redistest.Server{redistest.Real(t)}, Rights(t, file, "one server", "notifications"),
		func(_ *store.Store, live func(id string)) { live("id") })

	page := strings.ReplaceAll(read(t, "../REDIS.md"), `\|`, "|")
	_, page, _ = strings.Cut(page, "\n## A user with the least rights")
	page, _, _ = strings.Cut(page, "\n## ")
	for _, right := range Rights(t, file, "one server", "logins", "notifications", "cluster") {
		if !slices.Contains(rightsIn(page), right.(string)) {
			t.Errorf("store/REDIS.md does not have the right %s", right)
		}
	}
}

func rightsIn(text string) (all []string) {
	for _, word := range strings.Fields(text) {
		if word = strings.Trim(word, "`,"); regexp.MustCompile(`^([+&~-].|reset)`).MatchString(word) {
			all = append(all, word)
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

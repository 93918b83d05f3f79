package store

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// REDIS.md names the rights with which TestLeastRightsSuffice gets along, and no others.
func TestLeastRightsAreAsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("REDIS.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := "ACL SETUSER latchkey " + strings.Trim(fmt.Sprint(leastRights), "[]")
	tested = strings.NewReplacer(">pw", ">PASSWORD", "~app:*", "~latchkey:*").Replace(tested)
	documented := regexp.MustCompile(`(?m)^    (ACL SETUSER .*)$`).FindStringSubmatch(string(page))
	if documented == nil || documented[1] != tested {
		t.Errorf("REDIS.md says %q, tested is %q", documented, tested)
	}
}

package main

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Findings that are wrong come first. Each finding comes once, with its servers, and with the command that mends it.
// Findings that are ok are only counted, unless they are asked for.
func TestFindingsAreShort(t *testing.T) {
	t.Parallel()
	on := func(node, kind, level, text string, do ...string) finding {
		return finding{node, level, text, text, do, kind}
	}
	all := []finding{
		on("a:1", aNode, fine, "fine"), on("a:1", aNode, note, "perhaps"), on("a:1", aNode, wrong, "bad", "CONFIG SET x 1"),
		on("b:1", aNode, fine, "fine"), on("b:1", aNode, note, "perhaps"), on("b:1", aNode, wrong, "bad", "CONFIG SET x 1"),
		on("c:1", aNode, fine, "fine"), on("c:1", aNode, note, "perhaps"), on("c:1", aNode, wrong, "other", "ACL SETUSER x +y"),
		on("d:1", aNode, wrong, "gone"),
		on("s:1", aSentinel, wrong, "bad"),
	}
	const hint = "what CONFIG SET has changed is lost when Redis restarts: run CONFIG REWRITE after it, or edit redis.conf\n" +
		"what ACL SETUSER has changed is lost when Redis restarts: run ACL SAVE after it, or CONFIG REWRITE if Redis has no aclfile\n"
	of := map[string]servers{aNode: {4, 3}, aSentinel: {1, 1}}
	for verbose, want := range map[bool]string{
		false: "", true: "ok     all 3 nodes that replied  fine\n",
	} {
		var b strings.Builder
		j := &job{options: &options{verbose: verbose}, out: streams{Writer: bufio.NewWriter(&b)}}
		j.printFindings(all, of)
		j.out.Flush()
		want = `wrong  2 of 4 nodes: a:1, b:1  bad
         CONFIG SET x 1
wrong  c:1  other
         ACL SETUSER x +y
wrong  d:1  gone
wrong  Sentinel s:1  bad
note   all 3 nodes that replied  perhaps
` + want + hint + "4 wrong, 1 note, 1 ok" + map[bool]string{false: " (-v shows them)\n", true: "\n"}[verbose]
		if b.String() != want {
			t.Errorf("it prints\n%s\nwant\n%s", b.String(), want)
		}
	}
}

// The first output of doctor in the page is what it prints.
func TestDoctorInThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := redistest.Real(t, "--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl")
	s.Do(t, "ACL", wordsOf("SETUSER latchkey on >pw "+forSessions+forLogins+forWaking)...)
	await(t, "the output in the page", func() bool { // while the machine is busy, there may be a note on the round trip
		shown := call(t, s.URL, "doctor", "--acl-user", "latchkey").stdout
		indented := "    $ latchkey doctor --acl-user latchkey\n    " + strings.TrimSuffix(strings.ReplaceAll(shown, "\n", "\n    "), "    ")
		if !strings.Contains(string(page), indented) {
			t.Logf("the page has another output than\n%s", indented)
			return false
		}
		return true
	})
}

// A terminal gets colours, unless the user does not want them or it has none. A pipe never does.
func TestColours(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	for _, c := range []struct {
		terminal bool
		env      []string
		coloured bool
	}{
		{true, nil, true},
		{true, []string{"NO_COLOR=1"}, false},
		{true, []string{"TERM=dumb"}, false},
		{false, nil, false},
	} {
		r := seenIn(t, c.env, s.URL, c.terminal, false, "doctor", "-v")
		for _, colour := range []string{"\x1b[1;31mwrong \x1b[0m ", "\x1b[33mnote  \x1b[0m ", "\x1b[32mok    \x1b[0m "} {
			if strings.Contains(r.stdout, colour) != c.coloured {
				t.Errorf("%+v: %q", c, r.stdout)
			}
		}
		if !c.coloured && strings.Contains(r.stdout, "\x1b") {
			t.Errorf("%+v: %q", c, r.stdout)
		}
	}
}

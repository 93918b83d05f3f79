package frameworks

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// complete are the guide's complete programs, and how many lines each may have at most, not counting blank ones.
var complete = map[string]int{"nethttp": 40, "chi": 42, "gin": 45, "echo": 45}

func TestTheProgramsAreShort(t *testing.T) {
	t.Parallel()
	for name, most := range complete {
		text, err := os.ReadFile(filepath.Join("programs", name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		t.Logf("%s: %d lines", name, lines)
		if lines > most {
			t.Errorf("%s has %d lines, want at most %d", name, lines, most)
		}
	}
}

// Each program runs as it is, in a process of its own: no visit is lost, a login keeps the visits, and a request
// that panics saves nothing.
func TestThePrograms(t *testing.T) {
	t.Parallel()
	binaries := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binaries, "./programs/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name := range complete {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := started(t, filepath.Join(binaries, name))
			v.get("/").want(t, 200, "1")
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					if a := v.get("/"); a.StatusCode != 200 {
						t.Errorf("%d %q %v", a.StatusCode, a.body, a.err)
					}
				})
			}
			all.Wait()
			v.get("/").want(t, 200, "42")
			v.post("/login", "user=ann").want(t, 303, "")
			v.get("/").want(t, 200, "ann 43")
			v.get("/nowhere").want(t, 404, "*")
			v.post("/panic").want(t, 500, "Internal Server Error")
			v.get("/").want(t, 200, "ann 44")
		})
	}
}

// started starts a program, and returns a visitor that has no session yet.
func started(t *testing.T, binary string) *visitor {
	t.Helper()
	r := redistest.Embedded(t)
	var err error
	for range 5 { // if a port is in use, the program ends, and another port is tried
		addr := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)) // the system assigns higher ones
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = append(os.Environ(), "ADDR="+addr, "REDIS_URL="+r.URL, "SESSION_KEY="+string(testKey), "GIN_MODE=release")
		var p *subprocess.Process
		if p, err = subprocess.Start(cmd); err != nil {
			t.Fatal(err)
		}
		p.EndWith(t)
		v := newVisitorBy(t, "http://"+addr, &http.Transport{MaxIdleConnsPerHost: 100})
		begins := func() bool { // if Redis gets the session, the reply is from this program, not from another one on the port
			return newVisitorBy(t, v.url, &http.Transport{DisableKeepAlives: true}).get("/").StatusCode == 200 && len(r.Keys(t)) > 0
		}
		if err = p.Await(begins); err == nil {
			return v
		}
	}
	t.Fatal(err)
	return nil
}

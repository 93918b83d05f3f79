package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// These tests play a newcomer who has only the README. They run its commands literally, in empty directories, and
// get Latchkey from a module proxy as it will be after the tags. Only ports and the addresses of Redis differ.

var tree = flag.String("tree", "../..", "follow the README with the modules of this `directory`, as -as")
var as = flag.String("as", "", "the `version` of the modules; default: what they require")

// newcomer is the environment in which commands run.
var newcomer = sync.OnceValues(func() ([]string, error) {
	version, err := required(*tree)
	if version = cmp.Or(*as, version); err != nil && *as == "" {
		return nil, err
	}
	base, err := filepath.Abs("../../bin/release")
	if err != nil {
		return nil, err
	}
	// All modules except Latchkey itself stay in this module cache from one run to the next, and are not compiled
	// again. The go command does not look for packages of this module below an underscore.
	proxy, cache := filepath.Join(base, "proxy"), filepath.Join(base, "_mod")
	for _, stale := range []string{proxy, filepath.Join(cache, "github.com/a2139e8d"), filepath.Join(cache, "cache/download/github.com/a2139e8d")} {
		if err := os.RemoveAll(stale); err != nil {
			return nil, err
		}
	}
	if err := writeProxy(proxy, *tree, version); err != nil {
		return nil, err
	}
	env, err := outside(proxy, cache)
	return append(append(os.Environ(), env...), "GOTOOLCHAIN=local"), err
})

// in prepares a command in a directory.
func in(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	env, err := newcomer()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "GOBIN="+dir, "REDIS_URL=")
	return cmd
}

// sh runs commands as a shell does that stops at the first error.
func sh(t *testing.T, dir, commands string) string {
	t.Helper()
	out, err := in(t, dir, "sh", "-ec", commands).CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", commands, err, out)
	}
	return string(out)
}

// blocks returns the blocks of code below a heading of the README.
func blocks(t *testing.T, heading, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the README has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(section, -1) {
		found = append(found, block[1])
	}
	return found
}

// The quick start: from an empty directory to the second visit, without a Redis.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	commands, programs := blocks(t, "Use it", "sh"), blocks(t, "Use it", "go")
	if len(commands) < 2 || len(programs) != 1 {
		t.Fatalf("the quick start has %d blocks of commands and %d programs", len(commands), len(programs))
	}
	dir, begun := t.TempDir(), time.Now()
	address := freeAddress(t)
	program := moved(t, programs[0], "127.0.0.1:8080", address)
	count := strings.Count(regexp.MustCompile(`(?m)^\s*\n`).ReplaceAllString(programs[0], ""), "\n")
	if count > 35 {
		t.Errorf("the program has %d lines", count)
	}
	ended := serve(t, in(t, dir, "sh", "-ec", commands[0]+"cat >main.go <<'END'\n"+program+"END\n"+commands[1]))
	visit := visitor(t, "http://"+address, ended)
	if one, two := visit(), visit(); one != "visit 1\n" || two != "visit 2\n" {
		t.Errorf("the visitor sees %q, then %q", one, two)
	}
	t.Logf("%d lines; from the empty directory to the second visit: %v", count, time.Since(begun).Round(100*time.Millisecond))
}

// A program uses only one adapter, with the quick start on it: rueidis by the README's snippet, and go-redis with
// the client that the program already has.
func TestAdapterAlone(t *testing.T) {
	t.Parallel()
	for adapter, one := range map[string]struct{ client, opening string }{
		"store/rueidisstore": {"github.com/redis/rueidis", blocks(t, "One Redis, Sentinel, a cluster", "go")[0]},
		"store/goredisstore": {"github.com/redis/go-redis/v9", `
	st, err := goredisstore.New(redis.NewClient(&redis.Options{Addr: "node-1:6379", ContextTimeoutEnabled: true}), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
`},
	} {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			get := blocks(t, "One Redis, Sentinel, a cluster", "sh")[0]
			if adapter != "store/rueidisstore" {
				get = moved(t, get, "store/rueidisstore", adapter)
			}
			dir := t.TempDir()
			sh(t, dir, "go mod init example.com/app\n"+get)
			server, address := redistest.Real(t), freeAddress(t)
			opening := regexp.MustCompile(`"node-1:6379"(, "node-\d:6379")*`).ReplaceAllString(one.opening, fmt.Sprintf("%q", server.Addr))
			program := moved(t, onStore(t, blocks(t, "Use it", "go")[0], opening, root+"/"+adapter, one.client), "127.0.0.1:8080", address)
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			ended := serve(t, in(t, dir, "sh", "-ec", blocks(t, "Use it", "sh")[0][strings.Index(blocks(t, "Use it", "sh")[0], "export"):]+"go mod tidy\ngo run ."))
			visit := visitor(t, "http://"+address, ended)
			if one, two := visit(), visit(); one != "visit 1\n" || two != "visit 2\n" {
				t.Errorf("the visitor sees %q, then %q", one, two)
			}
			if len(server.Keys(t)) == 0 {
				t.Error("nothing is in Redis")
			}
		})
	}
}

// The operator's command is installed without a clone.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install := blocks(t, "Use it", "sh")
	sh(t, dir, install[len(install)-1])
	version, _ := required(*tree)
	if out := sh(t, dir, "./latchkey version"); !strings.HasPrefix(out, "latchkey "+cmp.Or(*as, version)+", go1.") {
		t.Errorf("latchkey version prints %q", out)
	}
}

// One program requires all modules, in the order in which nobody expects trouble, and in the other order.
func TestTogether(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"root first": {root, root + "/store/rueidisstore", root + "/store/goredisstore", root + "/middleware/otel"},
		"root last":  {root + "/middleware/otel", root + "/store/goredisstore", root + "/store/rueidisstore", root},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := "package main\n\nimport (\n\t_ \"" + root + "/middleware\"\n\t_ \"" + strings.Join(order[:2], "\"\n\t_ \"") + "\"\n)\n\nfunc main() {}\n"
			program = strings.Replace(program, "_ \""+root+"\"", "_ \""+root+"/session\"", 1)
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, "go mod init example.com/app\ngo get "+strings.Join(order, "\ngo get ")+"\ngo mod tidy\ngo list -deps . && go list -m all")
		})
	}
}

// moved replaces old by new, which must occur in text.
func moved(t *testing.T, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, new)
}

// onStore replaces how the quick start opens its store.
func onStore(t *testing.T, program, opening string, imports ...string) string {
	t.Helper()
	from, to := strings.Index(program, "\tst, err := "), strings.Index(program, "\tsessions, err := ")
	if from < 0 || to < 0 {
		t.Fatalf("the quick start does not open a store, and then make sessions:\n%s", program)
	}
	program = program[:from] + opening + program[to:]
	program = strings.Replace(program, "\t\""+root+"/store/embedded\"\n", "", 1)
	return strings.Replace(program, "import (\n", "import (\n\t\""+strings.Join(imports, "\"\n\t\"")+"\"\n", 1)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serve runs a command that serves until the test ends, with all processes that it starts. If it ends before, the
// channel is closed.
func serve(t *testing.T, cmd *exec.Cmd) (ended <-chan struct{}) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the program serves until it is killed, or its output shows why not
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		if t.Failed() {
			t.Logf("%s", out.String())
		}
	})
	return done
}

// patience returns how long it may take until a program serves, which is downloaded and built first: how fast that is
// does not matter. It leaves go test the time to end all that was started, and to show the output.
func patience(t *testing.T) time.Duration {
	end, limited := t.Deadline()
	if !limited {
		return time.Hour
	}
	return time.Until(end) - time.Minute
}

// visitor returns a browser that waits until the program serves.
func visitor(t *testing.T, url string, ended <-chan struct{}) func() string {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	return func() string {
		patience := patience(t)
		late := time.After(patience)
		for {
			res, err := client.Get(url)
			if err != nil {
				select {
				case <-ended:
					t.Fatalf("the program does not serve: %v", err)
				case <-late:
					t.Fatalf("the program does not serve after %v: %v", patience.Round(time.Second), err)
				case <-time.After(20 * time.Millisecond):
				}
				continue
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
	}
}

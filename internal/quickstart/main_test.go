package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/subprocess"
)

const key = "SESSION_KEY=c2l4dHktZm91ciBjaGFyYWN0ZXJzLCBpbmRlZWQK"

// Without a Redis the program runs, says that it forgets, and counts every visit, even if requests come at once.
func TestWithoutARedis(t *testing.T) {
	t.Parallel()
	p := start(t, key)
	ann := newVisitor(t, p)
	ann.wants("visit 1\n")
	ann.wants("visit 2\n")
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() { _, _ = ann.visits() }) // the counter tells whether one has failed
	}
	crowd.Wait()
	ann.wants("visit 23\n")
	newVisitor(t, p).wants("visit 1\n")
	if log := p.Log(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "forgotten when it ends") {
		t.Errorf("the log is\n%s", log)
	}
}

// With REDIS_URL the program keeps its sessions there, and a second process shares them.
func TestWithARedis(t *testing.T) {
	t.Parallel()
	url := "REDIS_URL=" + redistest.Real(t).URL
	one, two := start(t, key, url), start(t, key, url)
	ann := newVisitor(t, one)
	ann.wants("visit 1\n")
	ann.process = two
	ann.wants("visit 2\n")
	if log := one.Log() + two.Log(); log != "" {
		t.Errorf("the log is\n%s", log)
	}
}

// Without a key, or with a wrong URL, the program ends, and says what to do.
func TestWrongEnvironment(t *testing.T) {
	t.Parallel()
	for env, says := range map[string]string{
		"SESSION_KEY=":      "export SESSION_KEY=$(openssl rand -base64 32)",
		"SESSION_KEY=short": "export SESSION_KEY=$(openssl rand -base64 32)",
		"REDIS_URL=here":    "redis URL: must begin with redis://",
	} {
		cmd := program(t, key, env)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("with %s: %v, and the program says\n%s", env, err, out)
		}
	}
}

// A process serves at an address of its own.
type process struct {
	*subprocess.Process
	url string
}

func start(t *testing.T, env ...string) process {
	t.Helper()
	cmd := program(t, env...)
	address, stdout := io.Pipe()
	cmd.Stdout = stdout
	p, err := subprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.EndWith(t)
	t.Cleanup(func() { _ = address.Close() })
	go func() {
		<-p.Done()
		_ = stdout.Close()
	}()
	var at string
	if _, err := fmt.Fscanln(address, &at); err != nil {
		t.Fatalf("%v\n%s", err, p.Log())
	}
	return process{p, "http://" + at}
}

// program returns the program, in an environment.
func program(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(os.Environ(), append([]string{"SESSION_KEY=", "REDIS_URL="}, env...)...)
	return cmd
}

var dir string // of the binary

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "quickstart"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// built builds the program unchanged, except that it listens on a free port, and prints its address.
var built = sync.OnceValues(func() (path string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		return "", err
	}
	const call = `http.ListenAndServe("127.0.0.1:8080", `
	if strings.Count(string(source), call) != 1 {
		return "", fmt.Errorf("main.go has no %s", call)
	}
	files := map[string]string{
		"main.go": strings.Replace(string(source), call, "serve(", 1),
		"serve.go": `package main
			import ("fmt"; "net"; "net/http")
			func serve(h http.Handler) error {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil { return err }
				fmt.Println(l.Addr())
				return http.Serve(l, h)
			}`,
	}
	replace := map[string]string{}
	for name, text := range files {
		replace[filepath.Join(here, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "quickstart")
	if out, err := exec.Command("go", "build", "-o", path, "-overlay", list, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// A visitor keeps cookies.
type visitor struct {
	t *testing.T
	process
	http.Client
}

func newVisitor(t *testing.T, p process) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t, p, http.Client{Jar: jar, Transport: transport, Timeout: time.Minute}}
}

func (v *visitor) visits() (string, error) {
	res, err := v.Get(v.url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func (v *visitor) wants(want string) {
	v.t.Helper()
	if got, err := v.visits(); err != nil || got != want {
		v.t.Errorf("the visitor gets %q, %v, want %q", got, err, want)
	}
}

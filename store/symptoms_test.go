package store

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A symptom is a row of SYMPTOMS.md.
type symptom struct {
	says  string // words of the row and, once Redis is ill, of the store's error
	ill   func(t *testing.T, s *redistest.Server)
	flags []string // of Redis
	user  string   // in the store's URL
	path  string   // in the store's URL
}

// leastRights are those of REDIS.md, without the optional ones.
var leastRights = strings.Fields("on >pw resetkeys ~latchkey:* -@all " +
	"+ping +get +mget +getrange +set +del +pexpire +pttl +rename +time +eval +evalsha")

// symptoms are by the names of their rows.
var symptoms = map[string]symptom{
	"refused":     {says: "connection refused", ill: func(t *testing.T, s *redistest.Server) { s.Stop(t) }},
	"no-reply":    {says: "no reply: i/o timeout", ill: func(t *testing.T, s *redistest.Server) { s.Pause(t) }},
	"maxclients":  {says: "max number of clients reached", ill: set("maxclients", "1")},
	"password":    {says: "WRONGPASS", user: "app:wrong@", ill: allow()},
	"no-password": {says: "NOAUTH", ill: set("requirepass", "secret")},
	"password-unset": {says: "called without any password configured", user: ":secret@",
		ill: func(*testing.T, *redistest.Server) {}},
	"db-index": {says: "ERR DB index is out of range", path: "/99", ill: func(*testing.T, *redistest.Server) {}},
	"noperm":   {says: "NOPERM", user: "app:pw@", ill: allow("resetkeys", "~other:*")},
	"unknown-command": {says: "ERR unknown command", flags: []string{"--rename-command", "EVALSHA", ""},
		ill: func(*testing.T, *redistest.Server) {}},
	"full":       {says: "it is full: OOM command not allowed", ill: func(t *testing.T, s *redistest.Server) { s.Fill(t) }},
	"misconf":    {says: "MISCONF", ill: failToSave},
	"noreplicas": {says: "NOREPLICAS", ill: set("min-replicas-to-write", "1")},
	"readonly":   {says: "READONLY", ill: isReplica},
	"masterdown": {says: "MASTERDOWN", flags: []string{"--replica-serve-stale-data", "no"}, ill: isReplica},
	"loading":    {says: "LOADING", flags: []string{"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"}, ill: load},
	"busy":       {says: "BUSY", flags: []string{"--busy-reply-threshold", "20"}, ill: keepBusy},
	"clusterdown": {says: "CLUSTERDOWN", flags: []string{"--cluster-enabled", "yes"},
		ill: func(*testing.T, *redistest.Server) {}},
}

// The page has the words of the log: with a real Redis that is ill, the error has the words of its row.
func TestSymptoms(t *testing.T) {
	t.Parallel()
	for name, want := range symptoms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRow(t, name, want.says)
			s := redistest.Real(t, want.flags...)
			want.ill(t, s)
			st := openedAt(t, "redis://"+want.user+s.Addr+want.path)
			wantToSay(t, want.says, func(id string) error {
				return errors.Join(st.Ping(t.Context()), st.engine.Create(t.Context(), id, []byte("1"), records.Terms{}))
			})
		})
	}
}

// A stopped Redis causes one text for requests that were waiting, and another for later requests. The row has
// both.
func TestAStoppedRedisSaysOnlyWhatItsRowSays(t *testing.T) {
	t.Parallel()
	says := []string{"no reply: context deadline exceeded", "no reply: i/o timeout",
		"no connection: context deadline exceeded", "no connection: i/o timeout"}
	for _, words := range says {
		wantRow(t, "no-reply", words)
	}
	s := redistest.Real(t)
	st := openedAt(t, s.URL)
	must(t, st.Ping(t.Context()))
	s.Pause(t)
	var requests sync.WaitGroup
	for i := range 16 {
		requests.Go(func() {
			err := st.engine.Create(t.Context(), fmt.Sprintf("%s%04d", theID[:12], i), []byte("1"), records.Terms{})
			if err == nil || !slices.ContainsFunc(says, func(words string) bool { return strings.Contains(err.Error(), words) }) {
				t.Errorf("the row does not have the words of %v", err)
			}
		})
	}
	requests.Wait()
}

// A program that speaks TLS to a server without TLS waits for a reply to its first connection.
func TestTLSThatTheServerDoesNotSpeak(t *testing.T) {
	t.Parallel()
	wantRow(t, "no-tls", "no connection: i/o timeout")
	wantRow(t, "no-tls", "no connection: context deadline exceeded")
	err := openedAt(t, "rediss://"+redistest.Real(t).Addr).Ping(t.Context())
	wantMessage(t, err, []string{"no connection: "})
}

// Redis requires a certificate that the program lacks.
func TestACertificateThatTheProgramLacks(t *testing.T) {
	t.Parallel()
	const words = "remote error: tls: certificate required"
	wantRow(t, "client-certificate", words)
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	authority := x509.NewCertPool()
	authority.AddCert(lender.Certificate())
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: lender.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert})
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go func() {
				_ = conn.(*tls.Conn).Handshake()
				_, _ = io.Copy(io.Discard, conn.(*tls.Conn).NetConn()) // a reset could overtake the alert with the reason
				conn.Close()
			}()
		}
	}()
	st, err := Open("rediss://"+listener.Addr().String(), Options{Timeout: 5 * time.Second, TLS: &tls.Config{RootCAs: authority}})
	must(t, err)
	t.Cleanup(func() { st.Close() })
	wantToSay(t, words, func(string) error { return st.Ping(t.Context()) })
}

// Another program than Redis listens at the address.
func TestAnotherProgramThanRedis(t *testing.T) {
	t.Parallel()
	const words = "the connection broke: redigo: unexpected response line"
	wantRow(t, "not-redis", words)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "SSH-2.0-OpenSSH_9.2\r\n")
		}
	}()
	st := openedAt(t, "redis://"+listener.Addr().String())
	wantToSay(t, words, func(string) error { return st.Ping(t.Context()) })
}

// Redis 7.0 does not name the command that a script may not run. The store's error says where to find it.
func TestARightThatAScriptLacks(t *testing.T) {
	t.Parallel()
	const in70, later = "The user executing the script can't run this command or subcommand", "ACL failure in script"
	wantRow(t, "noperm-in-script", in70)
	wantRow(t, "noperm-in-script", later)
	s := redistest.Real(t)
	allow("-set")(t, s)
	err := openedAt(t, "redis://app:pw@"+s.Addr).engine.Create(t.Context(), theID, []byte("1"), records.Terms{})
	if err == nil || !strings.Contains(err.Error(), in70) && !strings.Contains(err.Error(), later) {
		t.Errorf("error %v is not in the page", err)
	}
	wantMessage(t, err, []string{"lacks a right, which ACL LOG names"})
	for _, entry := range s.Do(t, "ACL", "LOG").([]any) {
		if strings.Contains(fmt.Sprintf("%s", entry), "object set") {
			return
		}
	}
	t.Error("ACL LOG does not name set")
}

// wantRow checks that a row of the page has these words.
func wantRow(t *testing.T, name, words string) {
	t.Helper()
	page, err := os.ReadFile("SYMPTOMS.md")
	must(t, err)
	row := regexp.MustCompile(`(?m)^\| <a id="` + name + `"></a>(.*?) \|`).FindSubmatch(page)
	if row == nil || !strings.Contains(string(row[1]), words) {
		t.Errorf("the row %s does not say %q: %s", name, words, row)
	}
}

// wantToSay waits until the error of a try has these words. Each try has another ID.
func wantToSay(t *testing.T, words string, try func(id string) error) {
	t.Helper()
	n := 0
	redistest.Await(t, "the store says "+words, func() error {
		n++
		err := try(fmt.Sprintf("%s%04d", theID[:12], n))
		if err != nil && strings.Contains(err.Error(), words) {
			return nil
		}
		return cmp.Or(err, errors.New("there is no error"))
	})
}

func openedAt(t *testing.T, url string) *Store {
	t.Helper()
	st, err := Open(url, Options{Timeout: time.Second})
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

func set(name, value string) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) { s.Do(t, "CONFIG", "SET", name, value) }
}

// allow creates the user app, with the least rights and these rules.
func allow(rules ...string) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		args := []any{"SETUSER", "app"}
		for _, rule := range append(leastRights, rules...) {
			args = append(args, rule)
		}
		s.Do(t, "ACL", args...)
	}
}

func isReplica(t *testing.T, s *redistest.Server) { s.Do(t, "REPLICAOF", "127.0.0.1", "1") }

// failToSave makes a snapshot fail: its file is a directory that is not empty.
func failToSave(t *testing.T, s *redistest.Server) {
	setting := func(name string) string {
		pair, err := redis.Strings(s.Do(t, "CONFIG", "GET", name), nil)
		must(t, err)
		return pair[1]
	}
	must(t, os.MkdirAll(filepath.Join(setting("dir"), setting("dbfilename"), "full"), 0o700))
	set("save", "3600 1000000")(t, s)
	s.Do(t, "BGSAVE")
}

// load makes Redis load its data, for longer than wantToSay waits. It ends with the test.
func load(t *testing.T, s *redistest.Server) {
	s.Do(t, "EVAL", `for i = 1, 2500 do redis.call('SET', i, string.rep('x', 2000)) end`, 0)
	set("key-load-delay", "20000")(t, s) // µs for each key
	begin(t, s, "DEBUG", "RELOAD")
}

// keepBusy makes a script run until the server ends.
func keepBusy(t *testing.T, s *redistest.Server) { begin(t, s, "EVAL", "while true do end", 0) }

// begin sends a command, and does not wait for its reply.
func begin(t *testing.T, s *redistest.Server, cmd string, args ...any) {
	t.Helper()
	c, err := redis.DialURL(s.URL)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.Send(cmd, args...))
	must(t, c.Flush())
}

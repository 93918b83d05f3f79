package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/faults/rig"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A victim has a session of its own, beside the visitors', and meets the fault at a
// known point. Its writes go to /set, where no visitor goes. So what concerns it can
// be told on the wire and in Redis: there is "POST /set" in the tokens of its locks.
type victim struct {
	*testing.T
	http   *http.Client
	cookie string
}

// newVictim begins a session at a demo.
func newVictim(t *testing.T, at *rig.Demo) *victim {
	t.Helper()
	v := &victim{T: t, http: client(t)}
	v.http.Timeout = 30 * time.Second
	v.begin(at)
	return v
}

// begin begins another session.
func (v *victim) begin(at *rig.Demo) {
	v.Helper()
	v.cookie = ""
	v.getCookie(at, "/reset")
}

// login gives the session another id.
func (v *victim) login(at *rig.Demo) {
	v.Helper()
	v.getCookie(at, "/login")
}

func (v *victim) getCookie(at *rig.Demo, path string) {
	v.Helper()
	res, body := v.ask(v.http, http.MethodPost, at.URL+path, nil)
	if res == nil || len(res.Cookies()) == 0 {
		v.Fatalf("%s was answered without a cookie: %s", path, body)
	}
	v.cookie = res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
}

// ask makes a request; the response is nil where none came.
func (v *victim) ask(client *http.Client, method, target string, form url.Values) (*http.Response, string) {
	req, err := http.NewRequestWithContext(v.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err.Error()
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if v.cookie != "" {
		req.Header.Set("Cookie", v.cookie)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err.Error()
	}
	return res, strings.TrimSpace(string(body))
}

// post returns the status and the body of the answer, 0 for none.
func (v *victim) post(at *rig.Demo, path string) (status int, body string) {
	res, body := v.ask(v.http, http.MethodPost, at.URL+path, nil)
	if res == nil {
		return 0, body
	}
	return res.StatusCode, body
}

// get returns what a page says.
func (v *victim) get(at *rig.Demo, path string) string {
	v.Helper()
	res, body := v.ask(v.http, http.MethodGet, at.URL+path, nil)
	if res == nil || res.StatusCode != http.StatusOK {
		v.Errorf("GET %s: %s", path, body)
	}
	return body
}

// set stores a name and returns the status of the answer, 0 for none.
func (v *victim) set(at *rig.Demo, name string) int { return v.setWith(v.http, at, name) }

func (v *victim) setWith(client *http.Client, at *rig.Demo, name string) int {
	res, _ := v.ask(client, http.MethodPost, at.URL+"/set", url.Values{"name": {name}})
	if res == nil {
		return 0
	}
	return res.StatusCode
}

// setting begins to store a name. The answer's status comes by the channel.
func (v *victim) setting(at *rig.Demo, name string) <-chan int {
	status := make(chan int, 1)
	go func() { status <- v.set(at, name) }()
	return status
}

// names returns what is stored.
func (v *victim) names(at *rig.Demo) (names []string) {
	v.Helper()
	if err := json.Unmarshal([]byte(v.get(at, "/params")), &names); err != nil {
		v.Error(err)
	}
	return names
}

// wantNames checks what is stored.
func (v *victim) wantNames(at *rig.Demo, want ...string) {
	v.Helper()
	slices.Sort(want)
	if got := v.names(at); !slices.Equal(got, want) {
		v.Errorf("the session has %q, want %q", got, want)
	}
}

// wantSet stores a name, and it must be answered.
func (v *victim) wantSet(at *rig.Demo, name string) {
	v.Helper()
	if got := v.set(at, name); got != http.StatusOK {
		v.Errorf("/set %s was answered with %d", name, got)
	}
}

// locks returns those of a demo for requests with such a label, "" for all.
func (s *scene) locks(of *rig.Demo, label string) (keys []string) {
	s.Helper()
	mark := fmt.Sprintf("/%d %s", of.PID(), label)
	for _, key := range s.redis.Keys(s.T) {
		if !strings.HasSuffix(key, ".lock") {
			continue
		}
		if token, _ := s.redis.Get(s.T, key); strings.Contains(token, mark) {
			keys = append(keys, key)
		}
	}
	return keys
}

// atTake tells the command that takes the lock for a victim and reads its record. It
// is the first of a victim's that concerns record, lock and queue.
func atTake(cmd redistest.Command) bool { return ofVictim(cmd) && cmd.Args[1] == "3" }

// atCommit tells the command that stores a victim's record. Only that has the token
// of a lock, and a record.
func atCommit(cmd redistest.Command) bool { return ofVictim(cmd) && recordIn(cmd) != "" }

// atExtend tells the command that puts off the end of a victim's lease. It is the only
// one that concerns nothing but the lock.
func atExtend(cmd redistest.Command) bool { return ofVictim(cmd) && cmd.Args[1] == "1" }

func ofVictim(cmd redistest.Command) bool {
	return len(cmd.Args) > 2 && slices.ContainsFunc(cmd.Args, func(arg string) bool { return strings.HasSuffix(arg, " POST /set") })
}

// recordIn returns the record that a command is to store.
func recordIn(cmd redistest.Command) string {
	for _, arg := range cmd.Args {
		if strings.HasPrefix(arg, `{"v":1,"stamp":"`) {
			return arg
		}
	}
	return ""
}

// namesIn returns what a record has stored by /set.
func namesIn(t *testing.T, record string) (names []string) {
	t.Helper()
	var stored struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(record), &stored); err != nil {
		t.Errorf("a record is %q: %v", record, err)
	}
	for key := range stored.Data {
		if name, found := strings.CutPrefix(key, "param_"); found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	redigo "github.com/gomodule/redigo/redis"
)

// If Redis cannot be reached, or the server is not Redis, the error comes soon, and is one line with the
// address.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	full, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	go func() {
		for conn, err := full.Accept(); err == nil; conn, err = full.Accept() {
			conn.Close()
		}
	}()
	s := redistest.Real(t)
	s.Do(t, "CONFIG", "SET", "requirepass", "hunter2")
	at := func(address string) string { return "redis://" + address }
	for _, c := range []struct{ url, want string }{
		{at("127.0.0.1:1"), "redis at 127.0.0.1:1: connection refused\n"},
		{at("nowhere.invalid"), "redis at nowhere.invalid:6379: "},
		{at("127.0.0.1:1?addr=127.0.0.1:2"), "redis at 127.0.0.1:1, 127.0.0.1:2: "},
		{"unix:///nowhere/redis.sock", "redis at /nowhere/redis.sock: "},
		{at(silent.Addr().String()), "no reply within 300ms"},
		{"rediss://" + silent.Addr().String(), "no reply within 300ms; if it does not speak TLS, write redis"},
		{at(full.Addr().String()), "the server has closed the connection at once: perhaps it needs TLS: then write rediss or valkeys"},
		{"rediss://" + full.Addr().String(), "the server has closed the connection: perhaps Redis is at maxclients, or it wants a client's certificate: name it by --cert and --key\n"},
		{at(strings.TrimPrefix(web.URL, "http://")), "the server there is not Redis"},
		{at(s.Addr), "NOAUTH"},
		{at(":wrong@" + s.Addr), "or user is disabled: check the user and the password, in --redis, LATCHKEY_REDIS or --password-file\n"},
		{"rediss://:hunter2@" + s.Addr, "redis at " + s.Addr + ": "},
		{at(":hunter2@" + s.Addr + "/99"), "redis at " + s.Addr + ": "},
		{at(":hunter2@" + s.Addr + "?addr=" + s.Addr), "redis at " + s.Addr + ", "},
	} {
		for _, command := range [][]string{{"locks"}, {"list", "--user", "ann"}, {"doctor"}} {
			if strings.Contains(c.want, "300ms") { // the others reply, perhaps late
				command = append(command, "--timeout", "300ms")
			}
			r := call(t, c.url, command...)
			fails(t, r, exitError, c.want)
			if strings.Contains(r.stderr, "hunter2") || strings.Contains(r.stderr, "wrong@") {
				t.Errorf("the error repeats the password: %s", r.stderr)
			}
		}
	}
}

// The password may come from the environment or a file, and the URL from a flag.
func TestPasswords(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", "SETUSER", "ops", "on", ">hunter2", "~*", "&*", "+@all")
	s.Do(t, "ACL", "SETUSER", "default", "off")
	password := file(t, "hunter2\n")
	must(t, "redis://ops:hunter2@"+s.Addr, "locks")
	must(t, "redis://ops@"+s.Addr, "locks", "--password-file", password)
	must(t, "redis://127.0.0.1:1", "locks", "--password-file", password, "--redis", "redis://ops@"+s.Addr)
	must(t, "unix://ops:hunter2@"+s.Socket(), "locks")
	r := call(t, "redis://127.0.0.1:1", "locks", "--redis", "redis://ops:hunter2@"+s.Addr)
	fails(t, r, exitUsage, "any user of this machine can see", redisVariable, "--password-file")
}

// Sessions may be in another database than 0.
func TestDatabase(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL+"/3", store.Options{})
	begin(t, st, first, "{}")
	contains(t, must(t, s.URL+"/3", "show", first), first)
	fails(t, call(t, s.URL, "show", first), exitError, "there is none")
}

// With Sentinel the URL names the sentinels, and the sessions are those of the master. A sentinel without the
// name of a master is an error that says so, and so is an unknown name.
func TestSentinel(t *testing.T) {
	s, st := withRedis(t)
	sentinel := redistest.Sentinel(t, s, 1)
	begin(t, st, first, "{}")
	hold(t, st, first, "POST /order")
	url := "redis://" + sentinel
	contains(t, must(t, url+"?addr=127.0.0.1:1&master_set=sessions", "locks"), "POST /order")
	contains(t, must(t, url+"?master_set=sessions", "stats"), s.Addr)
	conn, err := redigo.Dial("tcp", sentinel)
	if err == nil {
		defer conn.Close()
		_, err = conn.Do("ACL", "SETUSER", "ops", "on", ">hunter2", "+@all", "&*")
	}
	if err != nil {
		t.Fatal(err)
	}
	must(t, url+"?master_set=sessions&sentinel_user=ops&sentinel_password=hunter2", "locks")
	r := call(t, url+"?master_set=sessions&sentinel_user=ops&sentinel_password=other", "locks")
	fails(t, r, exitError, "WRONGPASS")
	contains(t, must(t, url+"?master_set=sessions", "end", first), "1 session ended")
	fails(t, call(t, url, "locks"), exitError, "this is a Sentinel: add ?master_set=NAME")
	fails(t, call(t, url+"?master_set=others", "locks"), exitError, `the sentinels know no master "others"`)
	fails(t, call(t, s.URL+"?master_set=sessions", "locks"), exitError, "redis at "+s.Addr+": this is no Sentinel")
}

// If the master is away, and some of the Sentinels are, the error names the master's address and says why it cannot
// be reached. The same holds if the command was connected to the master before.
func TestTheMasterBehindSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	url := sentinelsURL("127.0.0.1:1", redistest.Sentinel(t, s, 1), "127.0.0.1:2")
	master := s.Addr + " (master " + redistest.MasterName + "): "
	j := connected(t, "locks", url)
	s.Stop(t)
	if _, err := j.lookAtAll(func(n *node, _ func(int)) error { return n.do(t.Context(), "DBSIZE").Error() }); err == nil || !strings.HasPrefix(err.Error(), "redis at "+master) {
		t.Errorf("after a connection to the master: %v", err)
	}
	for _, args := range [][]string{{"locks"}, {"list", "--user", "ann"}, {"show", first}, {"stats"}, {"end", first}} {
		r := call(t, url, args...)
		if want := "latchkey: redis at " + master + "connection refused; Sentinels that are away: 127.0.0.1:1, 127.0.0.1:2\n"; r.stderr != want || r.code != exitError {
			t.Errorf("%q: %+v, want %q", args, r, want)
		}
	}
	contains(t, call(t, url, "doctor").stdout, "wrong  "+s.Addr+"  the master cannot be reached: connection refused: start it",
		"wrong  2 of 3 Sentinels: 127.0.0.1:1, 127.0.0.1:2  it cannot be reached: connection refused: start it")
	s.Restart(t)
	s.Pause(t)
	fails(t, call(t, url, "locks", "--timeout", "1s"), exitError, master+"no reply within 1s")
	contains(t, call(t, url, "doctor", "--timeout", "1s").stdout, s.Addr+"  the master cannot be reached: no reply within 1s: see whether it is stopped")
}

// Sentinels that do not reply are passed over. They are no reason to say that the master does not reply.
func TestFrozenSentinels(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	frozen := func() string { // it takes connections, and never replies
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	url := sentinelsURL(frozen(), frozen(), redistest.Sentinel(t, s, 1))
	if r := call(t, url, "list", "--user", "ann"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	contains(t, must(t, url, "locks"), "is held")
	contains(t, must(t, url, "end", first), "1 session ended")
	contains(t, call(t, url, "doctor").stdout, "wrong  2 of 3 Sentinels", "it cannot be reached: no reply within 2s")
	if r := call(t, sentinelsURL(frozen(), frozen()), "locks", "--timeout", "500ms"); r.code != exitError || strings.Contains(r.stderr, s.Addr) {
		t.Errorf("no Sentinel replies: %+v", r)
	}
}

// Sentinels may have a password of their own. If it is missing or wrong, each command says so, and which Sentinel it is.
func TestThePasswordOfSentinels(t *testing.T) {
	t.Parallel()
	one := sentinelWithPassword(t)
	other := sentinelWithPassword(t)
	const missing = "NOAUTH Authentication required: add &sentinel_password=PASSWORD to the URL in LATCHKEY_REDIS"
	const mistaken = "WRONGPASS invalid username-password pair or user is disabled: see sentinel_password and sentinel_user in LATCHKEY_REDIS"
	for _, c := range []struct{ url, who, doctor, why string }{
		{sentinelsURL(one), one + " (Sentinel)", "Sentinel " + one, missing},
		{sentinelsURL(one, other), one + " (Sentinel)", "both Sentinels", missing},
		{sentinelsURL("127.0.0.1:1", one), one + " (Sentinel)", "Sentinel " + one, missing},
		{sentinelsURL(one) + "&sentinel_password=other", one + " (Sentinel)", "Sentinel " + one, mistaken},
		{sentinelsURL(one) + "&sentinel_user=ops&sentinel_password=hunter2", one + " (Sentinel)", "Sentinel " + one, mistaken},
	} {
		for _, args := range [][]string{{"stats"}, {"list", "--user", "ann"}} {
			fails(t, call(t, c.url, append(args, "--timeout", "20s")...), exitError, "redis at "+c.who+": "+c.why)
		}
		r := call(t, c.url, "doctor", "--timeout", "20s")
		contains(t, r.stdout, "wrong  "+c.doctor+"  it does not let this program in: "+c.why+"\n")
		if r.code != exitError || r.stderr != "" || strings.Count(r.stdout, "start it") != strings.Count(c.url, "127.0.0.1:1?") {
			t.Errorf("%+v", r)
		}
	}
	unknown := sentinelsURL(redistest.Sentinel(t, redistest.Real(t), 1))
	sentinel, _, _ := strings.Cut(strings.TrimPrefix(unknown, "redis://"), "?")
	fails(t, call(t, unknown+"s", "stats", "--timeout", "20s"), exitError, sentinel, `the sentinels know no master "sessionss": correct master_set in the URL`)
	contains(t, call(t, unknown+"s", "doctor", "--timeout", "20s").stdout, "wrong  Sentinel "+sentinel+"  it knows no master sessionss: correct master_set in the URL, or let it watch that one")
}

// If no Sentinel replies, the master is not known, and doctor says nothing of it.
func TestDoctorWithoutSentinels(t *testing.T) {
	t.Parallel()
	r := call(t, "redis://127.0.0.1:1?addr=127.0.0.1:2&master_set=sessions", "doctor")
	if want := "wrong  both Sentinels  it cannot be reached: connection refused: start it, or take it out of the URL\n1 wrong, 0 notes, 0 ok\n"; r.stdout != want || r.code != exitError || r.stderr != "" {
		t.Errorf("%+v, want %q", r, want)
	}
}

// If no address of the URL can be reached, each has its own reason.
func TestEachAddressHasItsReason(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone := redistest.Real(t)
	gone.Stop(t)
	r := call(t, "redis://"+gone.Addr+"?addr="+silent.Addr().String(), "stats", "--timeout", "1s")
	fails(t, r, exitError, "redis at "+gone.Addr+": connection refused; redis at "+silent.Addr().String()+": no reply within 1s")
}

// Two servers that are no cluster are not taken for one.
func TestTwoServersAreNoCluster(t *testing.T) {
	t.Parallel()
	one, other := redistest.Real(t), redistest.Real(t)
	fails(t, call(t, one.URL+"?addr="+other.Addr, "stats"), exitError, ": this is no cluster: name one address\n")
}

// A server that does not know AUTH repeats its arguments. They are in no output.
func TestAPasswordIsInNoOutput(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--rename-command", "AUTH", "", "--rename-command", "HELLO", "")
	for _, command := range []string{"locks", "users", "doctor"} {
		c := calling(t, strings.Replace(s.URL, "redis://", "redis://:s3cret@", 1), command)
		said, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "unknown command") || strings.Contains(string(said), "s3cret") {
			t.Errorf("%s: %v, %s", command, err, said)
		}
	}
}

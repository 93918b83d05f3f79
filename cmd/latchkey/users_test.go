package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/creack/pty"
	"github.com/redis/rueidis"
)

// A loggedInReport is what users prints with --json.
type loggedInReport struct {
	Users                       []loggedIn
	Total_users, Total_sessions int64
	Away                        []away
}

// summary has user:sessions, in order.
func (r loggedInReport) summary() (all []string) {
	for _, u := range r.Users {
		all = append(all, fmt.Sprintf("%s:%d", u.User, u.Sessions))
	}
	return all
}

func tagOf(id string) string { return id[:tagLength] }

// users shows who is logged in, the users with the most sessions first. Only live sessions count.
func TestUsers(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}") // a guest
	const odd = "Zoë\x1b[2J\u202e"
	var anns, bobs []string
	for n := range 4 {
		anns = append(anns, login(t, st, "ann", "Firefox", n))
		bobs = append(bobs, login(t, st, "bob", strings.Repeat("x", records.MaxDevice), n))
	}
	login(t, st, odd, "", 5)
	login(t, st, odd, "", 6)
	s.Do(t, "PEXPIRE", keyOf(anns[1]), (10 * time.Minute).Milliseconds())

	// Sessions that are not alive, although the list may still have them: each in its own way.
	s.Do(t, "DEL", keyOf(anns[3])) // it has expired
	for _, id := range bobs[:2] {
		if err := records.Of(st).End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	login(t, st, "eve", "", 1)
	if _, err := records.Of(st).EndUser(t.Context(), "eve"); err != nil {
		t.Fatal(err)
	}
	lost := login(t, st, "lost", "", 1)
	s.Do(t, "DEL", "latchkey:{"+tagOf(lost)+"}.user")
	except := login(t, st, "except", "", 3)
	login(t, st, "except", "", 4)
	list := "latchkey:{" + tagOf(except) + "}.list"
	before := s.Do(t, "DUMP", list)
	if _, err := records.Of(st).EndUser(t.Context(), "except", except); err != nil {
		t.Fatal(err)
	}
	s.Do(t, "RESTORE", list, "0", before, "REPLACE") // the mark counts, and not the list
	again, older := login(t, st, "again", "", 1), login(t, st, "again", "", 2)
	mark := "latchkey:{" + tagOf(again) + "}.user"
	own := older[tagLength+1:]
	s.Do(t, "SET", mark, strings.Replace(get(t, s, mark), own+">...........", own+">"+again[tagLength+1:], 1)) // it gives way
	s.Do(t, "SET", "latchkey:{"+strings.Repeat("A", tagLength)+"}.list", "junk")
	s.Do(t, "SET", "latchkey:{note}.list", "junk")

	found := decoded[loggedInReport](t, s.URL, "users", "--ttl", "30m", "--lifetime", "1000h")
	if got, want := found.summary(), []string{"ann:3", "bob:2", odd + ":2", "again:1", "except:1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if found.Total_users != 5 || found.Total_sessions != 9 || len(found.Away) != 0 {
		t.Errorf("%+v", found)
	}
	ann := found.Users[0]
	if ann.Tag != tagOf(anns[0]) {
		t.Errorf("the tag is %q", ann.Tag)
	}
	near(t, "the last login", ann.LastLogin, time.Now())
	near(t, "the last use", *ann.LastUsed, time.Now())
	near(t, "the last end", *ann.Expires, time.Now().Add(30*time.Minute))
	if found := decoded[loggedInReport](t, s.URL, "users"); found.Users[0].LastUsed != nil {
		t.Errorf("the last use is known without --ttl: %v", found.Users[0].LastUsed)
	}
	text := must(t, s.URL, "users", "--ttl", "30m", "--lifetime", "1000h")
	contains(t, text, "USER", "SESSIONS", "LAST LOGIN", "\nbob ", `Zoë\x1b[2J\u202e`, "5 users are logged in, with 9 sessions\n")
	if strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 7 {
		t.Errorf("users: %q", text)
	}
	limited := must(t, s.URL, "users", "--limit", "1")
	contains(t, limited, "\nann ", "5 users are logged in, with 9 sessions; --limit 0 shows all\n")
	if strings.Contains(limited, "bob") {
		t.Errorf("users --limit 1: %q", limited)
	}
	r := call(t, s.URL, "users", "--prefix", "none:")
	contains(t, r.stdout, "nobody is logged in\n")
	contains(t, r.stderr, `"none:"`, "--prefix")
}

// Without the keys of encrypted sessions, users are shown by the tag that begins their IDs. With the keys they are
// named, however large their sessions are.
func TestUsersOfEncryptedSessions(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	newest, older := []byte(strings.Repeat("new!", 8)), []byte(strings.Repeat("old!", 8))
	login(t, opened(t, s.URL, store.Options{Encryption: store.Encryption{Keys: [][]byte{older}}}), "bob", "Safari", 0)
	st := opened(t, s.URL, store.Options{Encryption: store.Encryption{Keys: [][]byte{newest}}})
	id := login(t, st, "ann", "Firefox", 0)
	login(t, st, "ann", "Firefox", 1)
	h := hold(t, st, id, "")
	if err := h.Save(t.Context(), []byte(`{"x":"`+strings.Repeat("x", 2*nameSize)+`"}`)); err != nil {
		t.Fatal(err)
	}
	keys := file(t, hex.EncodeToString(newest)+"\n"+hex.EncodeToString(older)+"\n")
	if got, want := decoded[loggedInReport](t, s.URL, "users", "--keys-file", keys).summary(), []string{"ann:2", "bob:1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for args, hint := range map[string]string{
		"":                                       "2 users are shown by their tags: the sessions are encrypted: name the file of the keys by --keys-file",
		file(t, strings.Repeat("abcd", 16)):      "2 users are shown by their tags: the keys are not those of the sessions",
		file(t, hex.EncodeToString(newest)+"\n"): "1 user is shown by the tag: the keys are not those of the sessions",
	} {
		command := []string{"users"}
		if args != "" {
			command = append(command, "--keys-file", args)
		}
		r := call(t, s.URL, command...)
		contains(t, r.stdout, "2 users are logged in, with 3 sessions\n")
		if !strings.Contains(hint, "1 user") {
			contains(t, r.stdout, "(tag "+tagOf(id)+") ")
		}
		contains(t, r.stderr, hint)
		if r.code != exitOK || strings.Contains(r.stderr, "abcd") {
			t.Errorf("%+v", r)
		}
	}
}

// All users are counted, although only the first are remembered.
func TestOfManyUsersTheFirstAreShown(t *testing.T) {
	s, st := withRedis(t)
	const n = 400 // more than a scan finds at once
	for i := range n {
		for session := range 1 + i/100 {
			login(t, st, fmt.Sprint("user-", i), "", session)
		}
	}
	found := decoded[loggedInReport](t, s.URL, "users", "--limit", "150")
	if found.Total_users != n || found.Total_sessions != 100+200+300+400 || len(found.Users) != 150 {
		t.Errorf("%d users, %d sessions, %d shown", found.Total_users, found.Total_sessions, len(found.Users))
	}
	for i, u := range found.Users {
		if want := 4 - i/100; u.Sessions != want || !strings.HasPrefix(u.User, fmt.Sprint("user-", want-1)) {
			t.Fatalf("user %d is %+v", i, u)
		}
	}
	if all := decoded[loggedInReport](t, s.URL, "users", "--limit", "0"); len(all.Users) != n {
		t.Errorf("%d of all are shown", len(all.Users))
	}
}

// However many users there are, few are remembered, and they are the right ones. SCAN may find a user twice.
func TestACrowdIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 20
	c, most := &crowd{}, 0
	for i := range 100_000 {
		u := loggedIn{Tag: fmt.Sprintf("%016d", i), Sessions: 1 + i*7919%100_000}
		c.add(u, limit)
		if u.Sessions > 99_000 {
			c.add(u, limit)
		}
		most = max(most, len(c.top))
	}
	c.cut(limit)
	if most > 2000 || len(c.top) != limit || c.users != 101_000 {
		t.Errorf("%d of %d users are remembered, %d in the end", most, c.users, len(c.top))
	}
	for i, u := range c.top {
		if u.Sessions != 100_000-i {
			t.Errorf("user %d has %d sessions", i, u.Sessions)
		}
	}
}

// On a cluster the users of all masters are counted. If a master is away, it is a row, and the others' users are shown.
func TestUsersOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	url := "redis://" + c.Nodes[1].Addr
	st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{c.Nodes[0].Addr}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	const n = 30
	for i := range n {
		login(t, st, fmt.Sprint("user-", i), "", 0)
	}
	if got := decoded[loggedInReport](t, url, "users", "--limit", "0"); got.Total_users != n || len(got.Users) != n || slices.ContainsFunc(got.Users, func(u loggedIn) bool { return u.User == "" }) {
		t.Errorf("%+v", got)
	}
	c.Nodes[0].Stop(t)
	r := call(t, url, "users", "--limit", "0")
	contains(t, r.stdout, "\n"+c.Nodes[0].Addr+"  away: connection refused\n", " users are logged in, with ", ", as far as is known\n", "user-")
	if lines := strings.Count(r.stdout, "\nuser-"); r.code != exitError || lines == 0 || lines >= n {
		t.Errorf("%d users: %+v", lines, r)
	}
}

// On a terminal a bar shows the progress on stderr, and is deleted in the end.
func TestUsersShowProgressOnATerminal(t *testing.T) {
	s, st := withRedis(t)
	for i := range 200 {
		login(t, st, fmt.Sprint("user-", i), "", 0)
	}
	terminal, end, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	c := calling(t, s.URL, "users", "--json")
	c.Stderr = end
	read := make(chan []byte)
	go func() {
		shown, _ := io.ReadAll(terminal) // the error says that the other end is closed
		read <- shown
	}()
	out, err := c.Output()
	if err != nil || strings.Contains(string(out), "\x1b") {
		t.Errorf("%v: %q", err, out)
	}
	end.Close()
	shown := <-read
	contains(t, string(shown), "\r[", " of 600 keys")
	if !strings.HasSuffix(string(shown), "\r\x1b[K") {
		t.Errorf("the bar is left: %q", shown)
	}
}

// If another program has written keys, users names them, has status 1, and shows the other users.
func TestUsersWhoCannotBeRead(t *testing.T) {
	s, st := withRedis(t)
	ann, bob, eve, zoe := login(t, st, "ann", "", 0), login(t, st, "bob", "", 0), login(t, st, "eve", "", 0), login(t, st, "zoe", "", 0)
	login(t, st, "eve", "", 1)
	list, mark := "latchkey:{"+tagOf(ann)+"}.list", "latchkey:{"+tagOf(zoe)+"}.user"
	s.Do(t, "SET", list, "junk")
	r := call(t, s.URL, "users")
	contains(t, r.stdout, "\nbob ", "\neve ", "3 users are logged in, with 4 sessions, as far as is known\n")
	if want := "latchkey: 1 key cannot be read, so users or sessions may be missing: another program has written it, or another version: " + list + "\n"; r.stderr != want || r.code != exitError {
		t.Errorf("%+v, want %q", r, want)
	}
	s.Do(t, "DEL", mark)
	s.Do(t, "RPUSH", mark, "junk")
	s.Do(t, "SET", keyOf(bob), "junk")
	s.Do(t, "DEL", keyOf(eve))
	s.Do(t, "RPUSH", keyOf(eve), "junk")
	r = call(t, s.URL, "users", "--json")
	contains(t, r.stderr, "latchkey: 4 keys cannot be read, ", list, mark, keyOf(bob), keyOf(eve))
	contains(t, r.stdout, `"total_users":1,"total_sessions":1,"unreadable":4,"unreadable_keys":["`)
	if r.code != exitError {
		t.Errorf("%+v", r)
	}
	s.Do(t, "FLUSHALL")
	login(t, st, "ann", "", 0)
	s.Do(t, "SET", list, "junk")
	r = call(t, s.URL, "users")
	contains(t, r.stdout, "nobody is logged in, as far as is known\n")
	contains(t, r.stderr, "1 key cannot be read, ")
}

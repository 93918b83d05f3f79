package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// login begins a session of a user, and returns its ID.
func login(t testing.TB, st *store.Store, user, device string, n int) string {
	t.Helper()
	tag := records.Of(st).Tag(user)
	id := base64.RawURLEncoding.EncodeToString(tag[:]) + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%8d", n))
	r := records.Record{Data: []byte(`{"card":"4111"}`), Created: time.Now().Add(-time.Duration(n) * time.Hour), User: user, Device: device}
	if err := records.Of(st).CreateRecord(t.Context(), id, r, records.Terms{TTL: 30 * time.Minute, Lifetime: 1000 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	return id
}

func ids(all []device) (ids []string) {
	for _, d := range all {
		ids = append(ids, d.Session)
	}
	return ids
}

// list shows a user's sessions, newest first, even if they are older than a program's usual Lifetime, and prolongs
// none.
func TestList(t *testing.T) {
	s, st := withRedis(t)
	old := login(t, st, "ann", "Firefox, Bern", 40)
	recent := login(t, st, "ann", "Safari\x1b[2J", 1)
	login(t, st, "bob", "", 0)
	s.Do(t, "PEXPIRE", keyOf(old), (10 * time.Minute).Milliseconds())

	text := must(t, s.URL, "list", "--user", "ann", "--ttl", "30m", "--lifetime", "1000h")
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], recent) || !strings.HasPrefix(lines[2], old) || strings.Contains(text, "\x1b") {
		t.Errorf("list: %q", text)
	}
	contains(t, lines[2], "Firefox, Bern", "1d16h ago")
	says(t, lines[2], twentyMinutesAgo, inTenMinutes)
	contains(t, lines[1], `Safari\x1b[2J`)
	found := decoded[[]device](t, s.URL, "list", "--user", "ann", "--ttl=30m", "--lifetime=1000h")
	if !slices.Equal(ids(found), []string{recent, old}) || found[1].Device != "Firefox, Bern" {
		t.Fatalf("%+v", found)
	}
	near(t, "its last use", *found[1].LastUsed, time.Now().Add(-20*time.Minute))
	near(t, "its end", found[1].Expires, time.Now().Add(10*time.Minute))
	if found := decoded[[]device](t, s.URL, "list", "--user", "ann"); found[1].LastUsed != nil {
		t.Errorf("the last use is known without --ttl: %v", found[1].LastUsed)
	}
	if left := s.Do(t, "PTTL", keyOf(old)).(int64); left > (10 * time.Minute).Milliseconds() {
		t.Errorf("it has %d ms now", left)
	}
	text = must(t, s.URL, "show", old, "--values")
	contains(t, text, "user       ann\n", "device     Firefox, Bern\n", "\n  card  \"4111\"\n")
}

func keyOf(id string) string { return (&options{prefix: records.DefaultPrefix}).recordKey(id) }

// end ends one session, even one that is held. The holder cannot save any more.
func TestEnd(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, second, "{}")
	id := login(t, st, "ann", "", 1)
	for _, id := range []string{second, id} {
		h := hold(t, st, id, "POST /order")
		if text := must(t, s.URL, "end", id); text != id+"\n1 session ended\n" {
			t.Errorf("end: %q", text)
		}
		if err := h.Save(t.Context(), []byte("{}")); err == nil {
			t.Errorf("the holder of %s has saved it", id)
		}
		fails(t, call(t, s.URL, "end", id), exitError, id, "it was ended ")
		fails(t, call(t, s.URL, "show", id), exitError, id, "it was ended")
	}
	fails(t, call(t, s.URL, "end", first), exitError, first, "there is none")
}

// P13: if a key does not hold a session that this version can read, it is left as it is, and each command says so.
func TestEndOfWhatIsNoSession(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, second, "{}")
	ofAnn := login(t, st, "ann", "", 1)
	for _, id := range []string{first, ofAnn} {
		ours := s.Do(t, "GET", keyOf(second)).([]byte)
		for what, put := range map[string][]any{
			"short":           {"SET", keyOf(id), "garbage"},
			"long":            {"SET", keyOf(id), strings.Repeat("garbage", 20)},
			"another version": {"SET", keyOf(id), strings.Replace(string(ours), `"v":`, `"v":9`, 1)},
			"damaged":         {"SET", keyOf(id), ours[:30]},
			"a list":          {"RPUSH", keyOf(id), "garbage"},
		} {
			s.Do(t, "DEL", keyOf(id))
			s.Do(t, put[0].(string), put[1:]...)
			before := s.Do(t, "DUMP", keyOf(id))
			fails(t, call(t, s.URL, "end", id), exitError, id, "another program has written it, or another version; it was left as it is")
			fails(t, call(t, s.URL, "show", id), exitError, id, "another program has written it, or another version")
			if after := s.Do(t, "DUMP", keyOf(id)); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%s: it is %q now", what, after)
			}
		}
	}
}

// end --user ends any number of sessions of a user, except those in --except, and leaves nothing behind.
func TestEndOfAUser(t *testing.T) {
	s, st := withRedis(t)
	const n = 600 // more than a batch
	var all []string
	for i := range n {
		all = append(all, login(t, st, "ann", "", i))
	}
	bobs := login(t, st, "bob", "", 0)
	kept := []string{all[3], all[5]}
	ended := decoded[map[string][]string](t, s.URL, "end", "--user", "ann", "--except", kept[0], "--except", kept[1])["ended"]
	if len(ended) != n-2 || slices.Contains(ended, kept[0]) {
		t.Errorf("%d were ended", len(ended))
	}
	for i, id := range all {
		if left := s.Do(t, "PTTL", keyOf(id)).(int64); i != 3 && i != 5 && left > time.Minute.Milliseconds() {
			t.Fatalf("the record of an ended session is there for %d ms", left)
		}
	}
	if left := ids(decoded[[]device](t, s.URL, "list", "--user", "ann")); !slices.Equal(left, kept) {
		t.Errorf("%v are left", left)
	}
	fails(t, call(t, s.URL, "show", all[0]), exitError, "it was ended a moment ago")
	fails(t, call(t, s.URL, "end", "--user", "ann", "--except", kept[0], "--except", bobs), exitError, "the user has no such session; none was ended")
	fails(t, call(t, s.URL, "end", "--user", "ann", "--except", all[0]), exitError, "the user has no such session; none was ended")
	if text := must(t, s.URL, "end", "--user", "ann"); strings.Count(text, "\n") != 3 || !strings.HasSuffix(text, "2 sessions ended\n") {
		t.Errorf("end: %q", text)
	}
	contains(t, must(t, s.URL, "show", bobs), "user       bob\n")
	// The session that is kept is the only one: the prefix and the keys are right, so there is no hint.
	if text := must(t, s.URL, "end", "--user", "bob", "--except", bobs); text != "0 sessions ended\n" {
		t.Errorf("end: %q", text)
	}
}

// A right that is missing is not taken for a record that cannot be read.
func TestListOfAUserWithoutTheRight(t *testing.T) {
	s, st := withRedis(t)
	login(t, st, "ann", "", 0)
	s.Do(t, "ACL", "SETUSER", "op", "on", ">pw", "~*", "&*", "+@all", "-zrange")
	fails(t, call(t, "redis://op:pw@"+s.Addr, "list", "--user", "ann"), exitError, "NOPERM")
}

// A user without sessions is not an error, but the keys may be missing.
func TestUnknownUser(t *testing.T) {
	s, _ := withRedis(t)
	for _, c := range []struct{ command, text, json string }{
		{"list", "the user has no session\n", "[]\n"},
		{"end", "0 sessions ended\n", `{"ended":[]}` + "\n"},
	} {
		for want, args := range map[string][]string{c.text: {c.command, "--user", "eve"}, c.json: {c.command, "--user", "eve", "--json"}} {
			r := call(t, s.URL, args...)
			if r.stdout != want || r.code != exitOK {
				t.Errorf("%q: %+v", args, r)
			}
			contains(t, r.stderr, `"latchkey:"`, "--prefix; ", "--keys-file")
		}
	}
}

// If the program encrypts its sessions, they are shown with its keys. Without the keys only the parts that
// are not encrypted are shown. No output has a key.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	newest, older := []byte(strings.Repeat("new!", 8)), []byte(strings.Repeat("old!", 8))
	o := store.Options{Encryption: store.Encryption{Keys: [][]byte{newest}}}
	st := opened(t, s.URL, o)
	begin(t, st, first, `{"card":"4111"}`)
	id := login(t, st, "ann", "Firefox", 0)
	keys := file(t, "# newest first\n"+hex.EncodeToString(older)+"\n\n  "+hex.EncodeToString(newest)+"\n")

	contains(t, must(t, s.URL, "show", first), " bytes, encrypted\n")
	contains(t, must(t, s.URL, "show", id), "created ")
	fails(t, call(t, s.URL, "show", first, "--values"), exitError, "are encrypted", "--keys-file", keysVariable)
	contains(t, must(t, s.URL, "show", first, "--values", "--keys-file", keys), `card  "4111"`)
	contains(t, must(t, s.URL, "show", id, "--keys-file", keys), "user       ann\n")
	contains(t, call(t, s.URL, "list", "--user", "ann").stderr, "--keys-file")
	c := calling(t, s.URL, "list", "--user", "ann")
	c.Env = append(c.Env, keysVariable+"="+keys)
	r := finish(t, c)
	contains(t, r.stdout, id, "Firefox")
	if r.stderr != "" {
		t.Errorf("list: %s", r.stderr)
	}
	wrong := file(t, strings.Repeat("abcd", 16))
	for command, code := range map[string]int{"list": exitOK, "end": exitError} {
		r := call(t, s.URL, command, "--user", "ann", "--keys-file", wrong)
		contains(t, r.stderr, "there are sessions sealed with the key ")
		if r.code != code || strings.Contains(r.stdout, id) {
			t.Errorf("%s with other keys: %+v", command, r)
		}
	}
	// A session of another key is shown as without keys, and the IDs of both keys lead to the right file.
	own := file(t, hex.EncodeToString(newest))
	theirs := file(t, strings.Repeat("dcba", 16))
	o.Prefix, o.Encryption.Keys = "other:", [][]byte{[]byte(strings.Repeat("\xdc\xba", 16))}
	other := opened(t, s.URL, o)
	begin(t, other, first, "{}")
	keyIn := func(r result, file, key string) (sealed string) {
		t.Helper()
		form := "sealed with the key ([0-9a-f]{8}), which is not in " + regexp.QuoteMeta(file) + ": it has the key ([0-9a-f]{8})\n$"
		found := regexp.MustCompile(form).FindStringSubmatch(r.stderr)
		if len(found) != 3 || strings.Contains(r.stderr, key) {
			t.Fatalf("%+v", r)
		}
		if r.code != exitOK || !strings.Contains(r.stdout, " bytes, encrypted\n") {
			t.Errorf("%+v", r)
		}
		return found[1] + " " + found[2]
	}
	ofOurs, ofTheirs, _ := strings.Cut(keyIn(call(t, s.URL, "show", first, "--keys-file", theirs), theirs, "dcba"), " ")
	r = call(t, s.URL, "show", first, "--prefix", "other:", "--keys-file", own)
	if got := keyIn(r, own, hex.EncodeToString(newest)[:8]); got != ofTheirs+" "+ofOurs {
		t.Errorf("the key of one session has the ID %s, that of the other %s; of the other file: %s", ofOurs, ofTheirs, got)
	}
	r = call(t, s.URL, "show", first, "--values", "--keys-file", wrong)
	sealed := "sealed with the key " + ofOurs + ", which is not in "
	fails(t, r, exitError, "session "+first+": its values are "+sealed+wrong+": it has the key ")
	if strings.Contains(r.stderr, "abcd") {
		t.Errorf("the error shows the key: %s", r.stderr)
	}
	both := file(t, strings.Repeat("abcd", 16)+"\n"+strings.Repeat("dcba", 16))
	r = call(t, s.URL, "list", id, first, "--keys-file", both)
	contains(t, r.stdout, "  (tag "+tagOf(id)+")  -\n", "  -"+strings.Repeat(" ", 23)+"-\n")
	byTag := "latchkey: 1 user is shown by the tag: the sessions are "
	contains(t, r.stderr, byTag+sealed+both+": it has the keys ", ", "+ofTheirs+"\n")
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	r = call(t, s.URL, "list", id, first)
	contains(t, r.stdout, "  (tag "+tagOf(id)+")  -\n", "  -"+strings.Repeat(" ", 23)+"-\n")
	contains(t, r.stderr, byTag+"encrypted: name the file of the keys by --keys-file or "+keysVariable+"\n")
	if found := ids(decoded[[]device](t, s.URL, "list", id, "--keys-file", keys)); !slices.Equal(found, []string{id}) {
		t.Errorf("%q", found)
	}
	contains(t, must(t, s.URL, "end", "--user", "ann", "--keys-file", keys), id, "1 session ended")
	fails(t, call(t, s.URL, "show", id), exitError, "it was ended a moment ago") // the list says so, without keys
}

// If the program's key is the text of a variable, the line on the page writes the file of keys. What the text decodes
// to is another key.
func TestAKeyThatIsText(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key!", 8)))
	st := opened(t, s.URL, store.Options{Encryption: store.Encryption{Keys: [][]byte{[]byte(key)}}})
	begin(t, st, first, `{"card":"4111"}`)
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^    (.*"\$KEY".*>>keys\))$`).FindSubmatch(page)
	if line == nil {
		t.Fatal("the page does not say how to write the file of keys")
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", string(line[1]))
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), "KEY="+key)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, must(t, s.URL, "show", first, "--values", "--keys-file", filepath.Join(c.Dir, "keys")), `card  "4111"`)
	decoded := file(t, hex.EncodeToString([]byte(strings.Repeat("key!", 8))))
	fails(t, call(t, s.URL, "show", first, "--values", "--keys-file", decoded), exitError, "which is not in ")
}

// Each command whose user lacks a right says where the rights are, as an address that anybody can open.
func TestALackingRightLeadsToThePage(t *testing.T) {
	s, st := withRedis(t)
	id := login(t, st, "ann", "", 1)
	s.Do(t, "ACL", "SETUSER", "blind", "on", ">pw", "~latchkey:*", "&*", "-@all", "+ping", "+role", "+scan")
	for _, args := range [][]string{{"users"}, {"list", "--user", "ann"}, {"list", id}, {"show", id}, {"end", id},
		{"end", "--user", "ann"}, {"end", "--user", "ann", "--except", id}, {"end", "--all"}} {
		r := call(t, "redis://blind:pw@"+s.Addr, args...)
		fails(t, r, exitError, "NOPERM", "https://github.com/a2139e8d/latchkey/blob/main/cmd/latchkey/README.md#rights has the rights")
	}
}

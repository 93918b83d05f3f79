package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

const listAbout = `Shows the sessions of a user, newest first, or those with these IDs, without
prolonging them. With - the IDs come from stdin, one a line. An unknown ID is an
error. Times of last use are only known if --ttl is the program's idle timeout.
`

// A device is one session of a user, as list shows it.
type device struct {
	Session  string     `json:"session"`
	User     string     `json:"user,omitempty"` // of a session that is listed by its ID
	Device   string     `json:"device,omitempty"`
	Created  time.Time  `json:"created"`
	LastUsed *time.Time `json:"last_used,omitempty"`
	Expires  time.Time  `json:"expires,omitzero"` // zero: never

	tag string // stands for the user of an encrypted session
}

func checkList(o *options) error {
	switch {
	case len(o.ids) > 0 && o.user != "":
		return usage("list takes IDs, or --user, not both")
	case len(o.ids) > 0 && o.ids[0] != fromInput && !isID(o.ids[0]): // probably the user
		return usage("list takes IDs, or a user: say list --user%s", cmp.Or(word(o.ids[0]), " NAME"))
	case len(o.ids) > 0:
		return nil
	case o.user == "":
		return usage("list needs --user, or IDs; latchkey users shows who is logged in")
	}
	return o.checkUser()
}

func (o *options) checkUser() error {
	if len(o.user) > records.MaxUser {
		return usage("--user must be the name of a user, of 1 to %d bytes", records.MaxUser)
	}
	return nil
}

func list(j *job) error {
	st, err := j.redis.store()
	if err != nil {
		return err
	}
	defer st.Close()
	if j.user == "" {
		return j.listIDs(st)
	}
	key := j.listKey(st, j.user)
	found, err := records.Of(st).ListUser(j.ctx, j.user, j.terms())
	if err != nil {
		return j.ofStore(err, key)
	}
	now, all := time.Now(), []device{}
	for _, l := range found {
		d := device{Session: l.ID, Device: l.Device, Created: l.Created.UTC(), Expires: l.Expires.UTC().Round(time.Millisecond)}
		if !l.Seen.IsZero() {
			d.LastUsed = j.lastUsed(l.Created, l.Expires, j.ttl, now)
		}
		all = append(all, d)
	}
	if !j.json {
		j.printDevices(all, now)
	} else if err := j.printJSON(all); err != nil {
		return err
	}
	if err := j.hintOfUser(st, len(all), "looked at"); !errors.Is(err, errFound) { // what was found is shown
		return err
	}
	return nil
}

// listIDs is list for sessions with these IDs.
func (j *job) listIDs(st *store.Store) error {
	found := make(map[string]*session)
	var mu sync.Mutex
	shown, err := j.eachID(func(id string) error {
		s, err := j.look(id)
		if err == nil {
			err = j.open(s, st)
		}
		mu.Lock()
		defer mu.Unlock()
		found[id] = s
		return err
	})
	if len(shown) == 0 && err != nil && !errors.Is(err, errFound) {
		return err
	}
	all := []device{}
	tags, keys := map[string]bool{}, map[string]bool{}
	for _, id := range shown {
		s := found[id]
		d := device{Session: id, User: s.User, Device: s.Device, Created: s.Created, LastUsed: s.LastUsed}
		if s.Expires != nil {
			d.Expires = *s.Expires
		}
		if tag, _, bound := strings.Cut(id, "."); bound && s.User == "" {
			d.tag, tags[tag], keys[s.key] = tag, true, true
		}
		all = append(all, d)
	}
	if len(tags) > 0 {
		j.hintAtTags(int64(len(tags)), "the sessions are "+j.whySealed(slices.Sorted(maps.Keys(keys))...))
	}
	if j.json {
		return cmp.Or(j.printJSON(all), err)
	}
	j.printDevices(all, time.Now())
	return err
}

// terms returns the Terms for looking at sessions: no session is too old for them.
func (o *options) terms() records.Terms {
	const long = 100 * 365 * 24 * time.Hour
	return records.Terms{TTL: time.Minute, Lifetime: long, MaxBytes: 1 << 30}
}

// lastUsed returns when a session that is not remembered was last used, or nil if that is not known.
func (o *options) lastUsed(created, expires time.Time, idle time.Duration, now time.Time) *time.Time {
	if idle == 0 || created.Add(o.lifetime).Sub(expires) < time.Second {
		return nil // not known, or the session ends by its Lifetime
	}
	used := expires.Add(-idle).UTC().Round(time.Millisecond)
	if used.After(now.Add(time.Second)) || used.Before(created.Add(-time.Second)) {
		return nil // the program has other timeouts
	}
	return &used
}

// hintAtNone says why a user may seem to have no sessions.
func (j *job) hintAtNone() {
	hint := j.prefixHint()
	if len(j.keys) == 0 {
		hint += "; if the program encrypts sessions, its users are only found with its keys: --keys-file"
	} else {
		hint += "; the keys may not be those of the sessions"
	}
	fmt.Fprintln(j.out.stderr, hint)
}

func (j *job) prefixHint() string {
	return fmt.Sprintf("latchkey: the prefix is %q: if the program has another prefix, name it by --prefix", j.prefix)
}

func (j *job) printDevices(all []device, now time.Time) {
	if len(all) == 0 && j.user != "" {
		fmt.Fprintln(j.out, "the user has no session")
	}
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"SESSION", "CREATED", "LAST USED", "EXPIRES", "USER", "DEVICE"}}
	for _, d := range all {
		used, expires, user := "-", "never", cmp.Or(d.User, "-")
		if d.LastUsed != nil {
			used = ago(*d.LastUsed, now)
		}
		if !d.Expires.IsZero() {
			expires = in(d.Expires, now)
		}
		if d.tag != "" {
			user = "(tag " + d.tag + ")"
		}
		rows = append(rows, []string{d.Session, ago(d.Created, now), used, expires, user, cmp.Or(d.Device, "-")})
	}
	if j.user != "" { // it is the same in all rows
		for i, row := range rows {
			rows[i] = slices.Delete(row, 4, 5)
		}
	}
	table(j.out, j.out.columns(), rows)
}

// tidy lets the records of sessions that were taken off their user's list expire in a minute. In a long-lived
// program the store does that in the background.
func (j *job) tidy(ctx context.Context, ids []string) {
	for len(ids) > 0 {
		some := ids[:min(batch, len(ids))]
		ids = ids[len(some):]
		var commands [][]string
		for _, id := range some {
			commands = append(commands, []string{"PEXPIRE", j.recordKey(id), "60000", "LT"})
		}
		j.redis.doAll(ctx, j.redis.client, commands) // the other records expire later
	}
}

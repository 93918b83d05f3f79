package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

const listAbout = `Shows the sessions of a user, newest first, without prolonging them. The times
of last use are only known if --ttl is the idle timeout of the program.
`

// A device is one session of a user, as list shows it.
type device struct {
	Session  string     `json:"session"`
	Device   string     `json:"device,omitempty"`
	Created  time.Time  `json:"created"`
	LastUsed *time.Time `json:"last_used,omitempty"`
	Expires  time.Time  `json:"expires"`
}

func checkList(o *options) error {
	switch {
	case len(o.ids) > 0 && o.user == "" && !isID(o.ids[0]): // probably the user
		return usage("list takes no id: say list --user%s", cmp.Or(word(o.ids[0]), " NAME"))
	case len(o.ids) > 0:
		return usage("list takes no id: use show for one session")
	case o.user == "":
		return usage("list needs --user")
	}
	return o.checkUser()
}

func (o *options) checkUser() error {
	if o.user == "" || len(o.user) > records.MaxUser {
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
	found, err := records.Of(st).ListUser(j.ctx, j.user, j.terms())
	if err != nil {
		return err
	}
	now, all := time.Now(), []device{}
	for _, l := range found {
		d := device{l.ID, l.Device, l.Created.UTC(), nil, l.Expires.UTC().Round(time.Millisecond)}
		if !l.Seen.IsZero() {
			d.LastUsed = j.lastUsed(l.Created, l.Expires, j.ttl, now)
		}
		all = append(all, d)
	}
	j.hintIfNone(len(all))
	if j.json {
		return j.printJSON(all)
	}
	j.printDevices(all, now)
	return nil
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

// hintIfNone says why a user may seem to have no sessions.
func (j *job) hintIfNone(n int) {
	if n > 0 {
		return
	}
	hint := fmt.Sprintf("latchkey: the prefix is %q: if the program has another prefix, name it by --prefix", j.prefix)
	if len(j.keys) == 0 {
		hint += "; if the program encrypts sessions, its users are only found with its keys: --keys-file"
	}
	fmt.Fprintln(j.out.stderr, hint)
}

func (j *job) printDevices(all []device, now time.Time) {
	if len(all) == 0 {
		fmt.Fprintln(j.out, "the user has no session")
		return
	}
	rows := [][]string{{"SESSION", "DEVICE", "CREATED", "LAST USED", "EXPIRES"}}
	for _, d := range all {
		used := "-"
		if d.LastUsed != nil {
			used = ago(*d.LastUsed, now)
		}
		name := d.Device
		if name == "" {
			name = "-"
		}
		rows = append(rows, []string{d.Session, name, ago(d.Created, now), used, in(d.Expires, now)})
	}
	table(j.out, rows)
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

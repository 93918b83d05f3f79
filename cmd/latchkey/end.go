package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
)

const endAbout = `Ends sessions at once, by their IDs or by their user. Requests that hold them
cannot save any more, and the users must log in again. With - the IDs come from
stdin, one a line; all lines are checked before a session is ended. An unknown
ID is an error; the other sessions are still ended. An unknown ID after --except
is an error, and no session is ended. A user without sessions is no error.
With --all it ends all sessions that are there when it begins, of users and of
guests. It finds them by SCAN on each master, with pauses.
`

func checkEnd(o *options) error {
	switch {
	case o.all && (len(o.ids) > 0 || o.user != "" || len(o.except) > 0):
		return usage("end --all takes neither IDs nor --user, nor --except")
	case o.all:
		return nil
	case len(o.ids) > 0 && (o.user != "" || len(o.except) > 0):
		return usage("end takes IDs, or --user, not both")
	case len(o.ids) > 0 && o.ids[0] != fromInput && !isID(o.ids[0]):
		return usage("%v; for the sessions of a user, say end --user%s", notAnID(o.ids[0]), cmp.Or(word(o.ids[0]), " NAME"))
	case len(o.ids) > 0:
		return nil
	case o.user == "" && len(o.except) > 0:
		return usage("--except is for end --user")
	case o.user == "":
		return usage("end needs IDs, - for IDs on stdin, --user, or --all")
	}
	return o.checkUser()
}

func end(j *job) error {
	st, err := j.redis.store()
	if err != nil {
		return err
	}
	defer st.Close()
	if j.all {
		return j.endAll(st)
	}
	if j.user == "" {
		ended, err := j.eachID(func(id string) error { return j.endOne(st, id) })
		if len(ended) == 0 && err != nil && !errors.Is(err, errFound) {
			return err
		}
		return cmp.Or(j.printEnded(ended), err)
	}
	if err := j.checkExcept(st); err != nil {
		return err
	}
	ended, err := records.Of(st).EndUser(j.ctx, j.user, j.except...)
	if err != nil {
		return j.ofEnd(err, j.listKey(st, j.user), "sessions of the user are ended")
	}
	j.tidy(j.ctx, ended)
	if err := j.printEnded(ended); err != nil {
		return err
	}
	// checkExcept has found each session that is kept, so then the prefix is right.
	return j.hintOfUser(st, len(ended)+len(j.except), "ended")
}

// checkExcept fails if a session that is to be kept is none of the user's. With a wrong ID, the session that was
// meant would be ended.
func (j *job) checkExcept(st *store.Store) error {
	if len(j.except) == 0 {
		return nil
	}
	found, err := records.Of(st).ListUser(j.ctx, j.user, j.terms())
	if err != nil {
		return j.ofStore(err, j.listKey(st, j.user))
	}
	for _, id := range j.except {
		if !slices.ContainsFunc(found, func(l records.Listed) bool { return l.ID == id }) {
			return fmt.Errorf("--except %s: the user has no such session; none was ended", id)
		}
	}
	return nil
}

func (j *job) printEnded(ended []string) error {
	if j.json {
		return j.printJSON(map[string][]string{"ended": append([]string{}, ended...)})
	}
	for _, id := range ended {
		fmt.Fprintln(j.out, printable(id))
	}
	fmt.Fprintf(j.out, "%s ended\n", plural(int64(len(ended)), "session"))
	return nil
}

func (j *job) endOne(st *store.Store, id string) error {
	switch err := records.Of(st).End(j.ctx, id); {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound):
		return noSession(id)
	case errors.Is(err, store.ErrGone):
		_, why := j.look(id) // perhaps it has a new ID, and was not ended
		return cmp.Or(why, fmt.Errorf("session %s: it was ended before", id))
	case errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("session %s: %w; it was left as it is", id, errForeign)
	case isWrongType(err): // perhaps of the user's list, which the script uses last
		return fmt.Errorf("%w: perhaps it is ended", j.ofStore(err, j.recordKey(id)))
	default:
		return j.ofEnd(err, j.recordKey(id), "it is ended")
	}
}

// ofEnd explains an error of the store, which has used a key to end sessions. Unless Redis has certainly done nothing,
// it also says what may have happened.
func (j *job) ofEnd(err error, key, perhaps string) error {
	nothing := !errors.Is(err, store.ErrUnavailable) || errors.Is(err, transport.ErrRefused)
	if err = j.ofStore(err, key); j.ctx.Err() != nil {
		err = errInterrupted
	}
	if nothing {
		return err
	}
	return fmt.Errorf("%w: perhaps %s", err, perhaps)
}

func noSession(id string) error {
	return fmt.Errorf("session %s: there is none: the ID is unknown, or it has expired", id)
}

package main

import (
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

const endAbout = `Ends a session, or those of a user, at once, even if a request holds them: the
request cannot save any more. The user must log in again. An unknown session is
an error; a user without sessions is not.
`

func checkEnd(o *options) error {
	switch {
	case len(o.ids) > 1:
		return usage("end takes one id; a user's sessions are ended with --user")
	case len(o.ids) == 1 && (o.user != "" || len(o.except) > 0):
		return usage("end takes an id, or --user, not both")
	case len(o.ids) == 1:
		return nil
	case o.user == "" && len(o.except) > 0:
		return usage("--except is for end --user")
	case o.user == "":
		return usage("end needs an id, or --user")
	}
	return o.checkUser()
}

func end(j *job) error {
	st, err := j.redis.store()
	if err != nil {
		return err
	}
	defer st.Close()
	ended := []string{}
	if len(j.ids) == 1 {
		if err := endOne(j, st); err != nil {
			return err
		}
		ended = j.ids
	} else {
		found, err := records.Of(st).EndUser(j.ctx, j.user, j.except...)
		if err != nil {
			return err
		}
		ended = append(ended, found...)
		j.tidy(j.ctx, ended)
		j.hintIfNone(len(ended))
	}
	if j.json {
		return j.printJSON(map[string][]string{"ended": ended})
	}
	for _, id := range ended {
		fmt.Fprintln(j.out, printable(id))
	}
	fmt.Fprintf(j.out, "%s ended\n", plural(int64(len(ended)), "session"))
	return nil
}

func endOne(j *job, st *store.Store) error {
	id := j.ids[0]
	switch err := records.Of(st).End(j.ctx, id); {
	case errors.Is(err, store.ErrNotFound):
		return noSession(id)
	case errors.Is(err, store.ErrGone):
		return fmt.Errorf("session %s: it was ended before", id)
	case errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("session %s: %w; it was left as it is", id, errForeign)
	default:
		return err
	}
}

func noSession(id string) error {
	return fmt.Errorf("session %s: there is none: the id is unknown, or it has expired", id)
}

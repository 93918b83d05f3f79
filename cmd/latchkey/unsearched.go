package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// A user has a list of sessions for each key of the program. Without a key, its lists cannot be found, and nothing
// says that there are any. So list and end --user look at some sessions of the program. These are a sample, since a
// million sessions take most of a minute: a key that has one session in two hundred is missed once in 20,000 times.
const searchSample = 2000

// searchKeys bounds the keys that are looked at for the sample: a Redis may have millions of other programs' keys.
const searchKeys = 20 * searchSample

// An unsearched has what a sample says of the lists that were not found.
type unsearched struct {
	looked int             // sessions
	keys   map[string]bool // their IDs: sessions are sealed with them, and they are not in the file of keys
	listed bool            // there are sessions that can be read, but are on lists that are not found
}

// hintOfUser says on stderr why the user may have more sessions than the n that were found. were says what has not
// happened to the others. hintOfUser returns errFound if the user may have such sessions. Print what was found before
// the call, since the search may take a while.
func (j *job) hintOfUser(st *store.Store, n int, were string) error {
	_ = j.out.Flush() // run returns its error
	u, err := j.unsearched(st)
	if err != nil && j.ctx.Err() != nil {
		return errInterrupted
	}
	switch {
	case len(u.keys) > 0 || u.listed:
		text := fmt.Sprintf("there are sessions %s; if any are the user's, they were not %s", u.why(j.options), were)
		fmt.Fprintln(j.out.stderr, "latchkey:", printable(text))
		return errFound
	case err != nil:
		fmt.Fprintln(j.out.stderr, "latchkey:", printable("whether sessions are sealed with other keys is not known: "+err.Error()))
		return errFound
	case n == 0:
		j.hintAtNone()
	}
	return nil
}

func (u *unsearched) why(o *options) string {
	keys := slices.Sorted(maps.Keys(u.keys))
	switch {
	case len(keys) > 0 && len(o.keys) == 0:
		return "sealed with " + theKeys(keys) + ": " + nameTheKeys
	case len(keys) > 0:
		return o.whySealed(keys...)
	case len(o.keys) == 0:
		return "on lists that were made with a key: " + nameTheKeys
	}
	return "on lists that were made with a key which is not in " + o.keysFile
}

// unsearched looks at sessions of all masters that reply. A master that was away before is no error, since the
// command has done without it.
func (j *job) unsearched(st *store.Store) (u *unsearched, _ error) {
	u = &unsearched{keys: make(map[string]bool)}
	masters, err := j.redis.masters(j.ctx)
	if err != nil {
		return u, err
	}
	own := make(map[string]bool)
	for _, key := range j.keys {
		id, _ := records.KeyID(key) // readKeys has checked that it can be used
		own[id] = true
	}
	own[""] = true // of a record that is damaged
	for i, n := range masters {
		if n.err != nil {
			continue
		}
		enough, looked := searchSample*(i+1)/len(masters), 0
		failed := n.sweep(j.ctx, j.pattern(""), batch, func(keys []string) (more bool, _ error) {
			err := j.sample(u, n, st, own, keys)
			return u.looked < enough && looked < searchKeys/len(masters), err
		}, func(seen int) { looked = seen })
		err = cmp.Or(err, failed)
	}
	return u, err
}

// sample looks at the sessions among some keys.
func (j *job) sample(u *unsearched, n *node, st *store.Store, own map[string]bool, keys []string) error {
	var ids []string
	var commands [][]string
	for _, key := range keys {
		if what, id := j.parseKey(key); what == record {
			ids = append(ids, id)
			commands = append(commands, []string{"GETRANGE", key, "0", strconv.Itoa(nameSize - 1)})
		}
	}
	for i, reply := range j.redis.doAll(j.ctx, n.client, commands) {
		text, err := reply.ToString()
		if err != nil && !isGone(err) {
			return err
		}
		h, ok := parseHead(text)
		if !ok || h.gone {
			continue
		}
		u.looked++
		if h.sealed && !own[h.key] {
			u.keys[h.key] = true
		} else if strings.Contains(ids[i], ".") { // a user's: a list of another key may have it, if it was saved since
			user, err := records.Of(st).UserIn(ids[i], []byte(text)) // fails if the record is cut off
			u.listed = u.listed || err == nil && !records.Of(st).Finds(user, ids[i])
		}
	}
	return nil
}

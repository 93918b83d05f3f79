package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// idsAtOnce is for how many sessions Redis is asked at once: a round trip each.
const idsAtOnce = 16

var errNotTried = errors.New("not tried")

// eachID calls f for each ID on the command line or on stdin, for several at once, and returns the IDs for which f has
// succeeded. If f fails for an ID, eachID says so on stderr, goes on with the others, and returns errFound in the end.
// If f fails for the only ID, eachID returns the error. With --json it does so only if Redis is to blame: an unknown ID is
// said on stderr, and the caller prints its JSON, as for several IDs.
func (j *job) eachID(f func(id string) error) (done []string, _ error) {
	oneServer := j.redis.client.Mode() != rueidis.ClientModeCluster
	errs := j.tryEachID(j.ids, oneServer, f)
	if len(errs) == 1 && j.ctx.Err() == nil {
		_, ofRedis := errors.AsType[failure](errs[0])
		switch {
		case errs[0] == nil:
			return j.ids, nil
		case !j.json || ofRedis:
			return nil, errs[0]
		}
	}
	var failed, untried int64
	for i, id := range j.ids {
		switch err := errs[i]; {
		case err == nil:
			done = append(done, id)
		case errors.Is(err, errNotTried):
			untried++
		default:
			failed++
			text := err.Error()
			if !strings.Contains(text, id) {
				text = "session " + id + ": " + text
			}
			fmt.Fprintln(j.out.stderr, "latchkey:", printable(text))
		}
	}
	switch {
	case j.ctx.Err() != nil:
		return done, errInterrupted
	case untried > 0:
		return done, fmt.Errorf("%s not tried", plural(untried, "more session"))
	case failed > 0:
		return done, errFound
	}
	return done, nil
}

// tryEachID returns an error for each ID, or nil. If the only server does not do what f asks of it, the IDs that are
// left are not tried. A cluster may have other masters that do.
func (j *job) tryEachID(ids []string, oneServer bool, f func(id string) error) []error {
	errs := slices.Repeat([]error{errNotTried}, len(ids))
	var next atomic.Int64
	var stop atomic.Bool
	try := func() (more bool) {
		i := int(next.Add(1)) - 1
		if i >= len(ids) || stop.Load() || j.ctx.Err() != nil {
			return false
		}
		errs[i] = f(ids[i])
		_, ofRedis := errors.AsType[failure](errs[i])
		switch {
		case j.ctx.Err() != nil && (ofRedis || errs[i] == errInterrupted || errors.Is(errs[i], context.Canceled)):
			errs[i] = errNotTried // what failed is the interrupt, and nothing has happened
		case ofRedis && oneServer:
			stop.Store(true)
		}
		return true
	}
	if !try() {
		return errs
	}
	var workers sync.WaitGroup
	for range min(idsAtOnce, len(ids)-1) {
		workers.Go(func() {
			for try() {
			}
		})
	}
	workers.Wait()
	return errs
}

// distinct leaves out IDs that were there before.
func distinct(ids []string) (all []string) {
	seen := make(map[string]bool)
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	return all
}

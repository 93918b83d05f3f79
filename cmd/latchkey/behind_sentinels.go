package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// explainedBehind explains an error of a client behind Sentinels. If the master cannot be reached, the error names it: the
// client's own error may be about a Sentinel that is away.
func (r *redis) explainedBehind(ctx context.Context, err error) error {
	wait := r.o.Timeout
	if isTimeout(err) { // the command has waited long enough: servers that reply do so soon
		wait /= 4
	}
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	masters, gone, refused := r.namedMasters(asking)
	also := ""
	if len(gone) > 0 {
		also = "; Sentinels that are away: " + strings.Join(gone, ", ")
	}
	var all []failure
	for _, address := range masters {
		// The master gets time of its own: a Sentinel that is away may have used up the Sentinels' time.
		dialling, cancel := context.WithTimeout(ctx, wait)
		client, failed := r.toServer(dialling, address)
		cancel()
		if failed == nil { // so it was something else, or another master
			client.Close()
			f, _ := errors.AsType[failure](r.explained(err))
			if !isRefused(err) {
				f.at = address + " (master " + r.option.Sentinel.MasterSet + ")"
				f.why += "; now it replies, perhaps after a failover: try again"
			}
			f.also = also
			return f
		}
		if f, ok := errors.AsType[failure](r.explainedOfMaster(failed, address)); ok {
			all = append(all, f)
		}
	}
	if len(masters) == 0 && refused != nil { // the client's error may be about one that is away
		refused.also = also
		return *refused
	}
	if len(all) == 0 {
		return r.explained(err)
	}
	f := all[0] // if they do not agree, each of them has a line of doctor
	f.also = also
	return f
}

// explainedOfMaster is explained if it is known that the error is the master's.
func (r *redis) explainedOfMaster(err error, address string) error {
	f, ok := errors.AsType[failure](r.explainedAt(err, address))
	if !ok {
		return err
	}
	f.master, f.at = address, address+" (master "+r.option.Sentinel.MasterSet+")"
	return f
}

// explainedOfSentinel is explained if it is known that the error is a Sentinel's, which may have a password of its own.
func (r *redis) explainedOfSentinel(err error, address string) failure {
	f, _ := errors.AsType[failure](r.explainedAt(err, address)) // which always returns one
	f.at = address + " (Sentinel)"
	switch text := err.Error(); {
	case strings.Contains(text, "unknown command 'SENTINEL'"):
		f.at, f.why = address, "this is no Sentinel: name Sentinels in the URL, or leave out master_set"
	case strings.HasPrefix(text, "NOAUTH"):
		f.why = "NOAUTH Authentication required: add &sentinel_password=PASSWORD to the URL in " + redisVariable
	case strings.HasPrefix(text, "WRONGPASS"):
		f.why = strings.TrimSuffix(text, ".") + ": see sentinel_password and sentinel_user in " + redisVariable
	}
	return f
}

// sentinelsThatReplyFirst returns the Sentinels of the URL: first those that reply soon, then the others, each in the
// URL's order. The client asks one after another, and each frozen Sentinel costs it a timeout. So a store would give up
// before it comes to one that replies. If no Sentinel replies soon, all get more time: the machine may be busy.
func (r *redis) sentinelsThatReplyFirst(ctx context.Context) []string {
	all := r.option.InitAddress
	gone := all
	for wait := r.o.Timeout / 4; len(gone) == len(all) && wait <= r.o.Timeout && ctx.Err() == nil; wait *= 2 {
		asking, cancel := context.WithTimeout(ctx, wait)
		_, gone, _ = r.namedMasters(asking)
		cancel()
	}
	replied := slices.DeleteFunc(slices.Clone(all), func(sentinel string) bool { return slices.Contains(gone, sentinel) })
	return append(replied, gone...)
}

// namedMasters asks all Sentinels at once. It returns the addresses that they name, the Sentinels that are away, and why
// the first one has refused to say, if any has.
func (r *redis) namedMasters(ctx context.Context) (masters, gone []string, refused *failure) {
	sentinels := r.option.InitAddress
	named, errs := make([]string, len(sentinels)), make([]error, len(sentinels))
	var asked sync.WaitGroup
	for i, sentinel := range sentinels {
		asked.Go(func() { named[i], errs[i] = r.namedBy(ctx, sentinel) })
	}
	asked.Wait()
	for i, sentinel := range sentinels {
		switch {
		case errs[i] != nil && !isRefused(errs[i]):
			gone = append(gone, sentinel)
		case errs[i] != nil && refused == nil:
			f := r.explainedOfSentinel(errs[i], sentinel)
			refused = &f
		case named[i] != "" && !slices.Contains(masters, named[i]):
			masters = append(masters, named[i])
		}
	}
	return masters, gone, refused
}

// namedBy returns the address of the master that a Sentinel names, or "" if it knows none.
func (r *redis) namedBy(ctx context.Context, sentinel string) (address string, _ error) {
	client, err := r.toSentinel(ctx, sentinel)
	if err != nil {
		return "", err
	}
	defer client.Close()
	named, err := r.do(ctx, client, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", r.option.Sentinel.MasterSet).AsStrSlice()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	if err != nil || len(named) != 2 {
		return "", err
	}
	return net.JoinHostPort(named[0], named[1]), nil
}

// toSentinel connects to a Sentinel.
func (r *redis) toSentinel(ctx context.Context, address string) (rueidis.Client, error) {
	c := r.tuned()
	c.InitAddress, c.ForceSingleClient, c.SelectDB = []string{address}, true, 0
	c.Username, c.Password, c.TLSConfig = c.Sentinel.Username, c.Sentinel.Password, c.Sentinel.TLSConfig
	c.Sentinel = rueidis.SentinelOption{}
	return newClient(ctx, c)
}

// toServer connects to the server at an address, such as the master that a Sentinel has named.
func (r *redis) toServer(ctx context.Context, address string) (rueidis.Client, error) {
	c := r.tuned()
	c.InitAddress, c.ForceSingleClient = []string{address}, true
	c.Sentinel = rueidis.SentinelOption{}
	return newClient(ctx, c)
}

package store

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// runLogin runs the exchange that prepareLogin has made. Before a login is refused, what has timed out
// and is still on the list no longer counts: the user could not log out there.
func (s *Store) runLogin(ctx context.Context, x scripting.Exchange, id string) error {
	_, reply, err := s.runner.Exchange(ctx, x)
	if err != nil {
		return err
	}
	err = s.readLogin(ctx, reply, id)
	if !errors.Is(err, ErrTooManySessions) {
		return err
	}
	tag, _, _ := cutTag(id)
	if pruned, failure := s.prune(ctx, tag); failure != nil || len(pruned) == 0 {
		return cmp.Or(failure, err)
	}
	if _, reply, err = s.runner.Exchange(ctx, x); err != nil {
		return err
	}
	return s.readLogin(ctx, reply, id)
}

// endSurplus ends sessions that are too many, those that would end first; fewer, if others on the list
// have timed out.
func (s *Store) endSurplus(ctx context.Context, tag string, members []string) error {
	if len(members) == 0 {
		return nil
	}
	pruned, err := s.prune(ctx, tag)
	if err != nil {
		return err
	}
	most := max(0, len(members)-len(pruned))
	members = slices.DeleteFunc(members, func(m string) bool { return slices.Contains(pruned, m) })
	for _, member := range members[:most] {
		err := s.end(ctx, tag+"."+member)
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// prune takes those sessions off a list that have timed out, and returns them. No record comes back
// when it is gone, since a record and its place on the list are written by one script, and an id is
// used once.
func (s *Store) prune(ctx context.Context, tag string) (pruned []string, err error) {
	list := s.listKey(tag)
	replies, err := s.look(ctx, list, transport.Command{"ZRANGE", list, 0, -1})
	if err != nil {
		return nil, err
	}
	members, _ := replies[0].([]any)
	for some := range slices.Chunk(members, listedAtOnce) {
		commands := make([]transport.Command, len(some))
		for i, m := range some {
			member, _ := scripting.Text(m)
			commands[i] = transport.Command{"PTTL", s.recordKey(tag + "." + string(member))}
		}
		replies, err := s.look(ctx, list, commands...)
		if err != nil {
			return nil, err
		}
		gone := transport.Command{"ZREM", list}
		for i, left := range replies {
			if left == int64(-2) {
				member, _ := scripting.Text(some[i])
				pruned, gone = append(pruned, string(member)), append(gone, some[i])
			}
		}
		if len(gone) == 2 {
			continue
		}
		if _, err := s.runner.Plain(ctx, list, gone); err != nil {
			return nil, err
		}
	}
	return pruned, nil
}

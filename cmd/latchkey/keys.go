package main

import (
	"encoding/base64"
	"strings"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// A kind is what a key is for. store/REDIS.md describes the keys.
type kind int

const (
	other  kind = iota // not a key of Latchkey
	record             // a session, or a tombstone
	lock               // the lock of a session
	owner              // the list of a user's sessions
	brief              // belongs to another key, or exists for a moment
)

// recordKey returns the key of a session. The keys of its lock begin with it.
func (o *options) recordKey(id string) string {
	if tag, rest, bound := strings.Cut(id, "."); bound {
		return o.prefix + "{" + tag + "}:" + rest
	}
	return o.prefix + "{" + id + "}"
}

// listKey returns the key of the list of a user's sessions.
func (o *options) listKey(st *store.Store, user string) string {
	tag := records.Of(st).Tag(user)
	return o.prefix + "{" + base64.RawURLEncoding.EncodeToString(tag[:]) + "}.list"
}

// parseKey returns the kind of a key, and the ID of its session.
func (o *options) parseKey(key string) (k kind, id string) {
	rest, ours := strings.CutPrefix(key, o.prefix+"{")
	id, rest, closed := strings.Cut(rest, "}")
	if !ours || !closed {
		return other, ""
	}
	if bound, ok := strings.CutPrefix(rest, ":"); ok {
		end := strings.IndexByte(bound+".", '.')
		id, rest = id+"."+bound[:end], bound[end:]
	}
	switch {
	case isTag(id) && rest == ".list":
		return owner, id
	case isTag(id) && rest == ".user":
		return brief, id
	case !isID(id):
		return other, ""
	case rest == "":
		return record, id
	case rest == ".lock":
		return lock, id
	case strings.HasPrefix(rest, ".lock.") || strings.HasPrefix(rest, ".new."):
		return brief, id
	}
	return other, id
}

// pattern returns the MATCH of SCAN for keys that begin with the prefix.
func (o *options) pattern(end string) string {
	return escaper.Replace(o.prefix) + "{*" + end
}

var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

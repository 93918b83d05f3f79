package main

import "strings"

// The keys of a session are in the store's comment; see REDIS.md there.
type kind int

const (
	other  kind = iota // no key of Latchkey's
	record             // a session, or the tombstone of one
	lock               // who holds one
	owner              // the list of a user's sessions
	brief              // what belongs to another one of these, or is there for a moment
)

// recordKey returns the key of a session, to which those of its lock are added.
func (o *options) recordKey(id string) string {
	if tag, rest, bound := strings.Cut(id, "."); bound {
		return o.prefix + "{" + tag + "}:" + rest
	}
	return o.prefix + "{" + id + "}"
}

// parseKey returns what a key is, and of which session.
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

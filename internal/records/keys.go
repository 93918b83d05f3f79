package records

import (
	"strings"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// sessionKeys are the keys of a session. They are strings, kept as the arguments that clients take, so that
// each is converted once.
type sessionKeys struct {
	record      any
	lock, queue any // nil: only the record is needed
	mark, list  any // nil: the session is not a user's
}

// ofUser reports whether k has the keys of a user's session.
func (k *sessionKeys) ofUser() bool { return k.mark != nil }

// forScript returns the keys in the order in which scripts take them, with room for one more.
func (k *sessionKeys) forScript() scripting.Keys {
	switch {
	case k.ofUser():
		return append(make(scripting.Keys, 0, 5), k.record, k.lock, k.queue, k.mark)
	case k.lock != nil:
		return append(make(scripting.Keys, 0, 4), k.record, k.lock, k.queue)
	default:
		return scripting.Keys{k.record}
	}
}

// withList is forScript for a script that changes the list of a user's sessions.
func (k *sessionKeys) withList() scripting.Keys {
	keys := k.forScript()
	if k.ofUser() {
		keys = append(keys, k.list)
	}
	return keys
}

// keys returns the keys of a session.
func (s *Engine) keys(id string) sessionKeys {
	queue := s.keyOf(id, ".lock.queue") // the longest: lock and record are parts of it, which saves each request allocations
	lock := strings.TrimSuffix(queue, ".queue")
	k := sessionKeys{record: strings.TrimSuffix(lock, ".lock"), lock: lock, queue: queue}
	if tag, _, ofUser := cutTag(id); ofUser {
		k.mark, k.list = s.markKey(tag), s.listKey(tag)
	}
	return k
}

// recordKeys is keys for scripts that need only the record of a guest, and so declare one key. A user's session
// has all its keys, since such a script needs the mark as well.
func (s *Engine) recordKeys(id string) sessionKeys {
	if _, _, ofUser := cutTag(id); ofUser {
		return s.keys(id)
	}
	return sessionKeys{record: s.options.Prefix + "{" + id + "}"}
}

func (s *Engine) recordKey(id string) string { return s.keyOf(id, "") }

// keyOf returns a key of a session: the key of its record, with the given end.
func (s *Engine) keyOf(id, end string) string {
	if tag, rest, ofUser := cutTag(id); ofUser {
		return s.options.Prefix + "{" + tag + "}:" + rest + end
	}
	return s.options.Prefix + "{" + id + "}" + end
}

// The sizes of the two parts of the ID of a user's session, in characters of base64url.
const tagSize, ownSize = 16, 11

// cutTag splits the ID of a user's session. Any other ID is returned as the tag.
func cutTag(id string) (tag, rest string, ofUser bool) {
	if len(id) != tagSize+1+ownSize || id[tagSize] != '.' {
		return id, "", false
	}
	return id[:tagSize], id[tagSize+1:], true
}

func (s *Engine) markKey(tag string) string { return s.options.Prefix + "{" + tag + "}.user" }

func (s *Engine) listKey(tag string) string { return s.options.Prefix + "{" + tag + "}.list" }

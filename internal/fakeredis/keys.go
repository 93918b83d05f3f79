package fakeredis

import (
	"math"
	"strings"
)

var keyCommands = []command{
	{"del", -2, write, allKeys, del},
	{"exists", -2, 0, allKeys, exists},
	{"rename", 3, write, firstTwo, rename},
	{"expire", -3, write, firstKey, expire},
	{"pexpire", -3, write, firstKey, expire},
	{"ttl", 2, 0, firstKey, ttl},
	{"pttl", 2, 0, firstKey, ttl},
	{"persist", 2, write, firstKey, persist},
	{"flushall", -1, write, noKeys, flushAll},
	{"lpush", -3, write | denyOOM, firstKey, lpush},
}

func del(s *Server, _ *Client, args []string) Reply {
	var n int64
	for _, key := range args[1:] {
		if _, ok := s.lookup(key); ok {
			delete(s.keys, key)
			n++
		}
	}
	return Int(n)
}

func exists(s *Server, _ *Client, args []string) Reply {
	var n int64
	for _, key := range args[1:] {
		if _, ok := s.lookup(key); ok {
			n++
		}
	}
	return Int(n)
}

func rename(s *Server, _ *Client, args []string) Reply {
	e, ok := s.lookup(args[1])
	if !ok {
		return Err(errNoKey)
	}
	delete(s.keys, args[1])
	s.keys[args[2]] = e
	return OK
}

func ttl(s *Server, _ *Client, args []string) Reply {
	e, ok := s.lookup(args[1])
	switch {
	case !ok:
		return Int(-2)
	case e.expires == 0:
		return Int(-1)
	case isMilli(args[0]):
		return Int(e.expires - s.ms)
	default:
		return Int((e.expires - s.ms + 500) / 1000)
	}
}

// isMilli reports whether a command counts in ms: PTTL does, TTL does not.
func isMilli(name string) bool { return name[0]|0x20 == 'p' }

func persist(s *Server, _ *Client, args []string) Reply {
	e, ok := s.lookup(args[1])
	if !ok || e.expires == 0 {
		return Int(0)
	}
	e.expires = 0
	s.keys[args[1]] = e
	return Int(1)
}

func expire(s *Server, _ *Client, args []string) Reply {
	options, refusal := expireOptions(args[3:])
	if refusal.IsError() {
		return refusal
	}
	when, ok := parseInt(args[2])
	if !ok {
		return Err(errNotInt)
	}
	if !isMilli(args[0]) {
		if when > math.MaxInt64/1000 || when < math.MinInt64/1000 {
			return errExpire(args[0])
		}
		when *= 1000
	}
	if when > math.MaxInt64-s.ms {
		return errExpire(args[0])
	}
	when += s.ms
	e, ok := s.lookup(args[1])
	if !ok || !options.allow(e.expires, when) {
		return Int(0)
	}
	// Redis deletes a key at once if its new time to live has already passed. Otherwise a key still
	// exists in the last ms of its time.
	if when <= s.ms {
		delete(s.keys, args[1])
		return Int(1)
	}
	e.expires = when
	s.keys[args[1]] = e
	return Int(1)
}

func errExpire(name string) Reply {
	return Err("ERR invalid expire time in '" + strings.ToLower(name) + "' command")
}

// expireOnly has the conditions of an EXPIRE.
type expireOnly struct{ nx, xx, gt, lt bool }

func (o expireOnly) allow(now, then int64) bool {
	never := now == 0
	return !(o.nx && !never || o.xx && never || o.gt && (never || then <= now) || o.lt && !never && then >= now)
}

func expireOptions(args []string) (o expireOnly, refusal Reply) {
	for _, arg := range args {
		switch strings.ToLower(arg) {
		case "nx":
			o.nx = true
		case "xx":
			o.xx = true
		case "gt":
			o.gt = true
		case "lt":
			o.lt = true
		default:
			return o, Err(printable(strings.Trim("ERR Unsupported option "+cString(arg), "\r\n")))
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		return o, Err("ERR NX and XX, GT or LT options at the same time are not compatible")
	case o.gt && o.lt:
		return o, Err("ERR GT and LT options at the same time are not compatible")
	}
	return o, Reply{}
}

func flushAll(s *Server, _ *Client, args []string) Reply {
	if len(args) > 2 || len(args) == 2 && !isFlushMode(args[1]) {
		return Err(errSyntax)
	}
	s.keys = map[string]entry{}
	return OK
}

func isFlushMode(arg string) bool {
	return strings.EqualFold(arg, "sync") || strings.EqualFold(arg, "async")
}

// lpush exists so that a key can hold something other than a string.
func lpush(s *Server, _ *Client, args []string) Reply {
	e, ok := s.lookup(args[1])
	if ok && e.list == nil {
		return Err(errWrongType)
	}
	list := make([]string, 0, len(args)-2+len(e.list)) // a new one: clones share the old
	for i := len(args) - 1; i >= 2; i-- {
		list = append(list, args[i])
	}
	e.list = append(list, e.list...)
	s.keys[args[1]] = e
	return Int(int64(len(e.list)))
}

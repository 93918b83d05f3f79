package fakeredis

import (
	"math"
	"strconv"
	"strings"
)

var stringCommands = []command{
	{"get", 2, 0, firstKey, get},
	{"set", -3, write | denyOOM, firstKey, set},
	{"setex", 4, write | denyOOM, firstKey, setEX},
	{"setnx", 3, write | denyOOM, firstKey, setNX},
	{"getset", 3, write | denyOOM, firstKey, getSet},
	{"getrange", 4, 0, firstKey, getRange},
	{"strlen", 2, 0, firstKey, strLen},
	{"mget", -2, 0, allKeys, mget},
}

// value returns the string at a key as GET does: nil if there is none, or an error.
func (s *Server) value(key string) Reply {
	e, ok := s.lookup(key)
	switch {
	case !ok:
		return Nil
	case !e.isString():
		return Err(errWrongType)
	default:
		return Bulk(e.text)
	}
}

func get(s *Server, _ *Client, args []string) Reply { return s.value(args[1]) }

func mget(s *Server, _ *Client, args []string) Reply {
	list := make([]Reply, 0, len(args)-1)
	for _, key := range args[1:] {
		value := s.value(key)
		if value.IsError() {
			value = Nil
		}
		list = append(list, value)
	}
	return Array(list...)
}

func strLen(s *Server, _ *Client, args []string) Reply {
	value := s.value(args[1])
	if value.IsError() {
		return value
	}
	return Int(int64(len(value.text)))
}

func getRange(s *Server, _ *Client, args []string) Reply {
	start, ok := parseInt(args[2])
	end, ok2 := parseInt(args[3])
	if !ok || !ok2 {
		return Err(errNotInt)
	}
	value := s.value(args[1])
	if value.IsError() {
		return value
	}
	size := int64(len(value.text))
	if start < 0 && end < 0 && start > end {
		return Bulk("")
	}
	if start < 0 {
		start = max(start+size, 0)
	}
	if end < 0 {
		end = max(end+size, 0)
	}
	end = min(end, size-1)
	if start > end {
		return Bulk("")
	}
	return Bulk(value.text[start : end+1])
}

// setEX exists for other programs that keep their records in the same Redis.
func setEX(s *Server, c *Client, args []string) Reply {
	return set(s, c, []string{args[0], args[1], args[3], "EX", args[2]})
}

func setNX(s *Server, _ *Client, args []string) Reply {
	if _, ok := s.lookup(args[1]); ok {
		return Int(0)
	}
	s.keys[args[1]] = entry{text: args[2]}
	return Int(1)
}

func getSet(s *Server, _ *Client, args []string) Reply {
	old := s.value(args[1])
	if !old.IsError() {
		s.keys[args[1]] = entry{text: args[2]}
	}
	return old
}

// setOptions are the options behind SET key value.
type setOptions struct {
	nx, xx, get, keepTTL bool
	unit, time           string // such as PX in lower case, and how many; "" if not given
}

func set(s *Server, _ *Client, args []string) Reply {
	o, ok := parseSet(args[3:])
	if !ok {
		return Err(errSyntax)
	}
	var expires int64
	if o.unit != "" {
		var refusal Reply
		if expires, refusal = s.expiry(o); refusal.IsError() {
			return refusal
		}
	}
	old, found := s.lookup(args[1])
	reply := OK
	if o.get {
		if reply = s.value(args[1]); reply.IsError() {
			return reply
		}
	}
	if o.nx && found || o.xx && !found {
		if o.get {
			return reply
		}
		return Nil
	}
	if o.keepTTL {
		expires = old.expires
	}
	s.keys[args[1]] = entry{text: args[2], expires: expires}
	return reply
}

func (s *Server) expiry(o setOptions) (int64, Reply) {
	n, ok := parseInt(o.time)
	if !ok {
		return 0, Err(errNotInt)
	}
	ms := int64(1000)
	if isMilli(o.unit) {
		ms = 1
	}
	if n <= 0 || n > math.MaxInt64/ms {
		return 0, errExpire("set")
	}
	n *= ms
	if len(o.unit) == len("px") { // relative to now
		if n > math.MaxInt64-s.ms {
			return 0, errExpire("set")
		}
		n += s.ms
	}
	return n, Reply{}
}

func parseSet(args []string) (o setOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		name := strings.ToLower(args[i])
		switch name {
		case "nx":
			o.nx = true
		case "xx":
			o.xx = true
		case "get":
			o.get = true
		case "keepttl":
			o.keepTTL = true
		case "ex", "px", "exat", "pxat":
			if o.unit != "" && o.unit != name || i+1 == len(args) {
				return o, false
			}
			i++
			o.unit, o.time = name, args[i]
		default:
			return o, false
		}
	}
	return o, !(o.nx && o.xx || o.keepTTL && o.unit != "")
}

// parseInt parses a number as strictly as Redis does: no sign except -, no leading zeros.
func parseInt(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && text != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

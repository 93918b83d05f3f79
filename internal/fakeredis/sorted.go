package fakeredis

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sorted sets, as far as the lists of users' sessions need them: ZADD without options, and ZRANGE with
// BYSCORE and WITHSCORES alone.
var sortedCommands = []command{
	{"zadd", -4, write | denyOOM, firstKey, zAdd},
	{"zcard", 2, 0, firstKey, zCard},
	{"zrange", -4, 0, firstKey, zRange},
	{"zrem", -3, write, firstKey, zRem},
	{"zremrangebyscore", 4, write, firstKey, zRemRangeByScore},
	{"zscore", 3, 0, firstKey, zScore},
}

// A scored is a member of a sorted set, with its score.
type scored struct {
	score  float64
	member string
}

func inOrder(a, b scored) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// A sortedSet has its members in order. It is replaced and never changed, since clones share it.
type sortedSet []scored

func (z sortedSet) find(member string) int {
	return slices.IndexFunc(z, func(s scored) bool { return s.member == member })
}

// sorted returns the sorted set at a key, an empty one if there is no key, or an error.
func (s *Server) sorted(key string) (sortedSet, Reply) {
	e, ok := s.lookup(key)
	if ok && e.sorted == nil {
		return nil, Err(errWrongType)
	}
	return e.sorted, Reply{}
}

// replace stores a sorted set. An empty set deletes the key.
func (s *Server) replace(key string, z sortedSet) {
	if len(z) == 0 {
		delete(s.keys, key)
		return
	}
	e, _ := s.lookup(key) // it may have a time to live
	e.sorted = z
	s.keys[key] = e
}

func zAdd(s *Server, _ *Client, args []string) Reply {
	switch strings.ToLower(args[2]) {
	case "nx", "xx", "gt", "lt", "ch", "incr":
		return Err("ERR options of ZADD are not simulated")
	}
	if len(args)%2 != 0 {
		return Err(errSyntax)
	}
	var scores []float64
	for i := 2; i < len(args); i += 2 {
		score, ok := parseScore(args[i])
		if !ok {
			return Err(errNotFloat)
		}
		scores = append(scores, plain(score))
	}
	old, refusal := s.sorted(args[1])
	if refusal.IsError() {
		return refusal
	}
	z, added := slices.Clone(old), int64(0)
	for i, score := range scores {
		member := args[3+2*i]
		if at := z.find(member); at >= 0 {
			z[at].score = score
		} else {
			z, added = append(z, scored{score, member}), added+1
		}
	}
	slices.SortFunc(z, inOrder)
	s.replace(args[1], z)
	return Int(added)
}

func zCard(s *Server, _ *Client, args []string) Reply {
	z, refusal := s.sorted(args[1])
	if refusal.IsError() {
		return refusal
	}
	return Int(int64(len(z)))
}

func zScore(s *Server, _ *Client, args []string) Reply {
	z, refusal := s.sorted(args[1])
	if refusal.IsError() {
		return refusal
	}
	if at := z.find(args[2]); at >= 0 {
		return Bulk(formatNumber(z[at].score))
	}
	return Nil
}

func zRem(s *Server, _ *Client, args []string) Reply {
	old, refusal := s.sorted(args[1])
	if refusal.IsError() {
		return refusal
	}
	z := slices.DeleteFunc(slices.Clone(old), func(m scored) bool { return slices.Contains(args[2:], m.member) })
	s.replace(args[1], z)
	return Int(int64(len(old) - len(z)))
}

func zRemRangeByScore(s *Server, _ *Client, args []string) Reply {
	within, ok := scoreRange(args[2], args[3])
	if !ok {
		return Err(errNotRange)
	}
	old, refusal := s.sorted(args[1])
	if refusal.IsError() {
		return refusal
	}
	z := slices.DeleteFunc(slices.Clone(old), within)
	s.replace(args[1], z)
	return Int(int64(len(old) - len(z)))
}

func zRange(s *Server, _ *Client, args []string) Reply {
	byScore, withScores := false, false
	for _, option := range args[4:] {
		switch strings.ToLower(option) {
		case "byscore":
			byScore = true
		case "withscores":
			withScores = true
		case "bylex", "rev", "limit":
			return Err("ERR this option of ZRANGE is not simulated")
		default:
			return Err(errSyntax)
		}
	}
	within, inScores := scoreRange(args[2], args[3])
	start, first := parseInt(args[2])
	end, last := parseInt(args[3])
	switch {
	case byScore && !inScores:
		return Err(errNotRange)
	case !byScore && !(first && last):
		return Err(errNotInt)
	}
	z, refusal := s.sorted(args[1])
	if refusal.IsError() {
		return refusal
	}
	if !byScore {
		size := int64(len(z))
		if start < 0 {
			start = max(start+size, 0)
		}
		if end < 0 {
			end += size
		}
		z = z[min(start, size):max(min(start, size), min(end, size-1)+1)]
	}
	list := []Reply{}
	for _, m := range z {
		if byScore && !within(m) {
			continue
		}
		if list = append(list, Bulk(m.member)); withScores {
			list = append(list, Bulk(formatNumber(m.score)))
		}
	}
	return Array(list...)
}

// scoreRange returns a function that reports whether a score is in a range. A ( excludes the end of the
// range.
func scoreRange(from, to string) (within func(scored) bool, ok bool) {
	from, over := strings.CutPrefix(from, "(")
	to, under := strings.CutPrefix(to, "(")
	least, ok := parseDouble(from)
	most, ok2 := parseDouble(to)
	return func(m scored) bool {
		return (m.score > least || !over && m.score == least) && (m.score < most || !under && m.score == most)
	}, ok && ok2
}

// parseDouble parses what C's strtod does, up to the end of the text; the empty text is 0. It rejects
// NaN.
func parseDouble(text string) (float64, bool) {
	text = strings.TrimLeft(cString(text), spaces)
	if text == "" {
		return 0, true
	}
	if lower := strings.ToLower(text); strings.Contains(lower, "0x") && !strings.Contains(lower, "p") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) || math.IsNaN(f) || strings.Contains(text, "_") {
		return 0, false
	}
	return f, true
}

// parseScore is parseDouble, but rejects text behind the number, and numbers that are too large.
func parseScore(text string) (float64, bool) {
	f, ok := parseDouble(text)
	odd := text == "" || strings.Contains(spaces, text[:1]) || cString(text) != text
	tooLarge := math.IsInf(f, 0) && strings.ContainsAny(text, "0123456789")
	return f, ok && !odd && !tooLarge
}

// plain turns -0 into 0, as a small sorted set of Redis does.
func plain(f float64) float64 {
	if f == 0 {
		return 0
	}
	return f
}

package fakeredis

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// matcher matches a pattern of Lua 5.1, step by step as its lstrlib.c does. The matcher of gopher-lua
// compiles a pattern each time, and accepts some patterns that Lua refuses.
type matcher struct {
	state     *lua.LState
	text, pat string
	depth     int
	level     int // number of captures
	captures  [32]capture
}

// capture is a part of the text, or a position in it.
type capture struct{ from, size int }

// Values of capture.size that are not sizes.
const (
	openCapture     = -1
	positionCapture = -2
)

// maxDepth bounds the recursion, which a long pattern could drive as far as it likes.
const maxDepth = 10_000

func (m *matcher) fail(text string) { m.state.RaiseError("%s", text) }

// find returns the first match at or behind a position. The end is negative if there is none.
func (m *matcher) find(from int) (begin, end int) {
	pat := 0
	anchored := strings.HasPrefix(m.pat, "^")
	if anchored {
		pat = 1
	}
	for begin = from; begin <= len(m.text); begin++ {
		m.level = 0
		if end = m.match(begin, pat); end >= 0 || anchored {
			return begin, end
		}
	}
	return 0, -1
}

// match matches the rest of the pattern, from p on, against the text at s. It returns the end of the
// match, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxDepth {
		m.fail("pattern too complex")
	}
	end := m.walk(s, p)
	m.depth--
	return end
}

func (m *matcher) walk(s, p int) int {
	for p < len(m.pat) {
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.startCapture(s, p+2, positionCapture)
			}
			return m.startCapture(s, p+1, openCapture)
		case ')':
			return m.endCapture(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.text) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) {
				switch c := m.pat[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					end := m.frontier(s, p+2)
					if end < 0 {
						return -1
					}
					p = end
					continue
				case c >= '0' && c <= '9':
					if s = m.again(s, c); s < 0 {
						return -1
					}
					p += 2
					continue
				}
			}
		}
		end := m.classEnd(p)
		here := s < len(m.text) && m.single(m.text[s], p, end)
		suffix := byte(0)
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if here {
				if found := m.match(s+1, end+1); found >= 0 {
					return found
				}
			}
			p = end + 1
		case '*':
			return m.most(s, p, end)
		case '+':
			if !here {
				return -1
			}
			return m.most(s+1, p, end)
		case '-':
			return m.least(s, p, end)
		default:
			if !here {
				return -1
			}
			s, p = s+1, end
		}
	}
	return s
}

// most matches as many bytes of a class as possible, and then the rest.
func (m *matcher) most(s, p, end int) int {
	n := 0
	for s+n < len(m.text) && m.single(m.text[s+n], p, end) {
		n++
	}
	for ; n >= 0; n-- {
		if found := m.match(s+n, end+1); found >= 0 {
			return found
		}
	}
	return -1
}

// least matches as few bytes of a class as possible, and then the rest.
func (m *matcher) least(s, p, end int) int {
	for {
		if found := m.match(s, end+1); found >= 0 {
			return found
		}
		if s == len(m.text) || !m.single(m.text[s], p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) startCapture(s, p, size int) int {
	if m.level == len(m.captures) {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, size}
	m.level++
	found := m.match(s, p)
	if found < 0 {
		m.level--
	}
	return found
}

func (m *matcher) endCapture(s, p int) int {
	for i := m.level - 1; i >= 0; i-- {
		if c := &m.captures[i]; c.size == openCapture {
			c.size = s - c.from
			found := m.match(s, p)
			if found < 0 {
				c.size = openCapture
			}
			return found
		}
	}
	m.fail("invalid pattern capture")
	return -1
}

// again matches the text of an earlier capture.
func (m *matcher) again(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].size == openCapture {
		m.fail("invalid capture index")
	}
	c := m.captures[i]
	if c.size != positionCapture && strings.HasPrefix(m.text[s:], m.text[c.from:c.from+c.size]) {
		return s + c.size
	}
	return -1
}

// balance matches %bxy.
func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	if s == len(m.text) || m.text[s] != m.pat[p] {
		return -1
	}
	depth := 1
	for s++; s < len(m.text); s++ {
		switch m.text[s] {
		case m.pat[p+1]:
			if depth--; depth == 0 {
				return s + 1
			}
		case m.pat[p]:
			depth++
		}
	}
	return -1
}

// frontier matches %f and the set behind it, and returns where the pattern goes on.
func (m *matcher) frontier(s, p int) int {
	if p == len(m.pat) || m.pat[p] != '[' {
		m.fail("missing '[' after '%f' in pattern")
	}
	end := m.classEnd(p)
	var before, here byte
	if s > 0 {
		before = m.text[s-1]
	}
	if s < len(m.text) {
		here = m.text[s]
	}
	if m.set(before, p, end-1) || !m.set(here, p, end-1) {
		return -1
	}
	return end
}

package fakeredis_test

import "testing"

// pattern returns one of Lua, or what is none.
func (g generator) pattern() (p string) {
	if g.one(4) {
		p = "^"
	}
	for range 1 + g.IntN(5) {
		p += g.of("a", "b", ".", "%a", "%d", "%s", "%w", "%W", "%x", "%p", "%c", "%u", "%l", "%z", "%A", "[ab]", "[^a]", "[a-c]", "[%a-]", "[]a]", "[^]]", "[a-]",
			"(", ")", "(a)", "(.-)", "()", "%1", "%b()", "%bxy", "%f[%a]", "%f[^a]", "%.", "%%", "$", "-", "[", "]", "%", "^", "\x00", "/", " ", "\xff")
		p += g.of("", "", "", "*", "+", "-", "?")
	}
	return p
}

func (g generator) text() (s string) {
	for range g.IntN(8) {
		s += g.of("a", "b", "ab", "(", ")", "x", "y", "1", " ", "\n", "%", ".", "-", "]", "A", "\x00", "\xff", "/")
	}
	return s
}

func TestRandomPatternsDoTheSameOnARealRedis(t *testing.T) {
	p := newPair(t)
	l := p.connect()
	for p.seed = range *rounds {
		g := newGenerator(p.seed)
		for range 100 {
			text, pattern, from := g.text(), g.pattern(), g.of("1", "1", "2", "-1", "9")
			l.do("EVAL", "return {string.find(ARGV[1], ARGV[2], ARGV[3])}", "0", text, pattern, from)
			l.do("EVAL", "return {string.match(ARGV[1], ARGV[2], ARGV[3])}", "0", text, pattern, from)
		}
	}
}

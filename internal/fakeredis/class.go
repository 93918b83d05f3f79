package fakeredis

// classEnd returns the end of the class that begins at p in the pattern.
func (m *matcher) classEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p == len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p == len(m.pat) || m.pat[p] != ']'; first = false {
			if p == len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
			p++
			if m.pat[p-1] == '%' && p < len(m.pat) {
				p++ // the escaped byte may be a ]
			}
		}
		return p + 1
	default:
		return p
	}
}

// single reports whether a byte is in the class that begins at p.
func (m *matcher) single(c byte, p, end int) bool {
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return isClass(c, m.pat[p+1])
	case '[':
		return m.set(c, p, end-1)
	default:
		return m.pat[p] == c
	}
}

// set reports whether a byte is in the set between the [ at p and the ] at end.
func (m *matcher) set(c byte, p, end int) bool {
	in := true
	if m.pat[p+1] == '^' {
		in = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if isClass(c, m.pat[p]) {
				return in
			}
		case m.pat[p+1] == '-' && p+2 < end:
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

// isClass reports whether a byte is in the class that a letter names, in the C locale.
func isClass(c, class byte) bool {
	var is bool
	switch class | 0x20 {
	case 'a':
		is = isLetter(c)
	case 'd':
		is = isDigit(c)
	case 'l':
		is = c >= 'a' && c <= 'z'
	case 'u':
		is = c >= 'A' && c <= 'Z'
	case 's':
		is = c == ' ' || c >= '\t' && c <= '\r'
	case 'w':
		is = isLetter(c) || isDigit(c)
	case 'x':
		is = isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'c':
		is = c < ' ' || c == 0x7f
	case 'p':
		is = c > ' ' && c < 0x7f && !isLetter(c) && !isDigit(c)
	case 'z':
		is = c == 0
	default:
		return c == class
	}
	if class >= 'A' && class <= 'Z' {
		return !is
	}
	return is
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

package fakeredis

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openText replaces those functions of gopher-lua that differ from Lua's.
func openText(l *lua.LState) {
	library := l.G.Global.RawGetString("string").(*lua.LTable)
	l.SetFuncs(library, map[string]lua.LGFunction{
		"find":  func(l *lua.LState) int { return search(l, true) },
		"match": func(l *lua.LState) int { return search(l, false) },
	})
	l.G.Global.RawSetString("tonumber", l.NewFunction(toNumber))
}

// search is string.find if find is true, otherwise string.match.
func search(l *lua.LState, find bool) int {
	text, pattern := l.CheckString(1), l.CheckString(2)
	from := optInt(l, 3, 1)
	if from < 0 {
		from += len(text) + 1
	}
	from = min(max(from-1, 0), len(text))
	special := strings.ContainsAny(cString(pattern), "^$*+?.([%-")
	if find && (!special || lua.LVAsBool(l.Get(4))) {
		i := strings.Index(text[from:], pattern)
		if i < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(from + i + 1))
		l.Push(lua.LNumber(from + i + len(pattern)))
		return 2
	}
	m := matcher{state: l, text: text, pat: cString(pattern)}
	begin, end := m.find(from)
	if end < 0 {
		l.Push(lua.LNil)
		return 1
	}
	if find {
		l.Push(lua.LNumber(begin + 1))
		l.Push(lua.LNumber(end))
		return 2 + m.pushCaptures()
	}
	if m.level == 0 {
		l.Push(lua.LString(text[begin:end]))
		return 1
	}
	return m.pushCaptures()
}

// optInt returns an argument that is a number, or a text that looks like one.
func optInt(l *lua.LState, i, otherwise int) int {
	if text, ok := l.Get(i).(lua.LString); ok {
		if n, ok := inTen(string(text)).(lua.LNumber); ok {
			return int(n)
		}
	}
	return l.OptInt(i, otherwise)
}

func (m *matcher) pushCaptures() int {
	for _, c := range m.captures[:m.level] {
		switch c.size {
		case positionCapture:
			m.state.Push(lua.LNumber(c.from + 1))
		case openCapture:
			m.fail("unfinished capture")
		default:
			m.state.Push(lua.LString(m.text[c.from : c.from+c.size]))
		}
	}
	return m.level
}

// toNumber is tonumber.
func toNumber(l *lua.LState) int {
	base := optInt(l, 2, 10)
	value := l.CheckAny(1)
	if base != 10 {
		value = inBase(l.CheckString(1), base)
	} else if text, ok := value.(lua.LString); ok {
		value = inTen(string(text))
	} else if _, ok := value.(lua.LNumber); !ok {
		value = lua.LNil
	}
	l.Push(value)
	return 1
}

const spaces = " \t\n\v\f\r"

func inTen(text string) lua.LValue {
	text = strings.Trim(text, spaces)
	digits := strings.ToLower(strings.TrimLeft(text, "+-"))
	if strings.HasPrefix(digits, "0x") && !strings.ContainsAny(digits, ".p_") {
		n, err := strconv.ParseUint(digits[2:], 16, 64)
		if err != nil || len(text)-len(digits) > 1 {
			return lua.LNil
		}
		return lua.LNumber(math.Copysign(float64(n), sign(text)))
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(n, 0) || strings.Contains(text, "_") {
		return lua.LNil
	}
	return lua.LNumber(n)
}

func sign(text string) float64 {
	if strings.HasPrefix(text, "-") {
		return -1
	}
	return 1
}

func inBase(text string, base int) lua.LValue {
	n, err := strconv.ParseInt(strings.Trim(text, spaces), base, 64)
	if err != nil {
		return lua.LNil
	}
	return lua.LNumber(n)
}

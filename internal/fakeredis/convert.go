package fakeredis

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// toLua converts a reply as redis.call does.
func toLua(l *lua.LState, r Reply) lua.LValue {
	switch r.kind {
	case KindSimple:
		t := l.CreateTable(0, 1)
		t.RawSetString("ok", lua.LString(r.text))
		return t
	case KindError:
		return errorTable(l, r.text)
	case KindInt:
		return lua.LNumber(r.n)
	case KindBulk:
		return lua.LString(r.text)
	case KindArray:
		t := l.CreateTable(len(r.list), 0)
		for _, element := range r.list {
			t.Append(toLua(l, element))
		}
		return t
	default:
		return lua.LFalse
	}
}

func errorTable(l *lua.LState, text string) *lua.LTable {
	t := l.CreateTable(0, 1)
	t.RawSetString("err", lua.LString(text))
	return t
}

// toReply converts the result of a script.
func toReply(v lua.LValue) Reply {
	switch v := v.(type) {
	case lua.LString:
		return Bulk(string(v))
	case lua.LNumber:
		return Int(truncate(float64(v)))
	case lua.LBool:
		if v {
			return Int(1)
		}
		return Nil
	case *lua.LTable:
		return tableReply(v)
	default:
		return Nil
	}
}

func tableReply(t *lua.LTable) Reply {
	if text, ok := t.RawGetString("err").(lua.LString); ok {
		return Err(printable(errorText(text)))
	}
	if text, ok := t.RawGetString("ok").(lua.LString); ok {
		return Simple(printable(cString(string(text))))
	}
	list := []Reply{}
	for i := 1; ; i++ {
		element := t.RawGetInt(i)
		if element == lua.LNil {
			return Array(list...)
		}
		list = append(list, toReply(element))
	}
}

// truncate does what C does on amd64, on any machine.
func truncate(f float64) int64 {
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// formatNumber is C's %.17g.
func formatNumber(f float64) string {
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1e15 && (f != 0 || !math.Signbit(f)):
		return strconv.FormatInt(int64(f), 10)
	case math.IsInf(f, 0), math.IsNaN(f):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	default:
		return strconv.FormatFloat(f, 'g', 17, 64)
	}
}

// errorText returns the text of an error as it is sent: without line ends at its end, and cut at a zero
// byte, since it is a C string in Redis.
func errorText(v lua.LValue) string {
	return strings.Trim(cString(lua.LVAsString(v)), "\r\n")
}

func cString(text string) string {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return text[:i]
	}
	return text
}

// withCode returns the text of an error with a code as its first word: ERR if the text has only one word.
func withCode(text string) string {
	text = strings.TrimPrefix(cString(text), "-")
	code, message, ok := strings.Cut(text, " ")
	if !ok {
		code, message = "ERR", text
	}
	return code + " " + strings.Trim(message, "\r\n")
}

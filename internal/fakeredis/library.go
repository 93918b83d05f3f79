package fakeredis

import (
	lua "github.com/yuin/gopher-lua"
)

// removed are the functions that gopher-lua has in addition to those of Redis, and the functions with
// results that the script does not determine.
var removed = []string{"print", "dofile", "loadfile", "require", "module", "newproxy", "_printregs", "_GOPHER_LUA_VERSION"}

// open gives the interpreter the libraries that scripts have in Redis.
func (e *engine) open() {
	l := e.state
	for name, library := range map[string]lua.LGFunction{
		lua.BaseLibName:      lua.OpenBase,
		lua.TabLibName:       lua.OpenTable,
		lua.StringLibName:    lua.OpenString,
		lua.MathLibName:      lua.OpenMath,
		lua.CoroutineLibName: lua.OpenCoroutine,
	} {
		l.Push(l.NewFunction(library))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	global := l.G.Global
	for _, name := range removed {
		global.RawSetString(name, lua.LNil)
	}
	math := global.RawGetString("math").(*lua.LTable)
	math.RawSetString("random", lua.LNil)
	math.RawSetString("randomseed", lua.LNil)
	openText(l)
	global.RawSetString("pcall", l.NewFunction(protectedCall))
	global.RawSetString("redis", l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
		"call":         func(l *lua.LState) int { return e.call(l, true) },
		"pcall":        func(l *lua.LState) int { return e.call(l, false) },
		"sha1hex":      sha1Of,
		"error_reply":  errorReply,
		"status_reply": statusReply,
	}))
	meta := l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
		"__index": func(l *lua.LState) int {
			l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.Get(2))
			return 0
		},
		"__newindex": func(l *lua.LState) int {
			l.RaiseError("Attempt to modify a readonly table")
			return 0
		},
	})
	global.RawSetString("KEYS", lua.LFalse) // so that they are not new
	global.RawSetString("ARGV", lua.LFalse)
	l.SetMetatable(global, meta)
}

// call executes a command for a script. It raises errors, or returns them as tables.
func (e *engine) call(l *lua.LState, raise bool) int {
	reply := e.reply(l)
	if reply.kind != KindError {
		l.Push(toLua(l, reply))
		return 1
	}
	failure := errorTable(l, reply.text)
	if raise {
		l.Error(failure, 1)
	}
	l.Push(failure)
	return 1
}

func (e *engine) reply(l *lua.LState) Reply {
	n := l.GetTop()
	if n == 0 {
		return Err("ERR Please specify at least one argument for this redis lib call")
	}
	args := e.args[:0]
	for i := 1; i <= n; i++ {
		switch value := l.Get(i).(type) {
		case lua.LString:
			args = append(args, string(value))
		case lua.LNumber:
			args = append(args, formatNumber(float64(value)))
		default:
			return Err("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	e.args = args
	command := lookupCommand(args)
	switch {
	case command == nil:
		return Err("ERR Unknown Redis command called from script")
	case !command.takes(len(args)):
		return Err("ERR Wrong number of args calling Redis command from script")
	case command.flags&noScript != 0:
		return Err("ERR This Redis command is not allowed from script")
	}
	if refusal, refused := e.server.refuseScript(command, args, e.wrote); refused {
		return refusal
	}
	e.wrote = e.wrote || command.flags&write != 0
	return command.run(e.server, e.client, args)
}

// protectedCall is pcall. It returns an error of redis.call as a text.
func protectedCall(l *lua.LState) int {
	l.CheckAny(1)
	if err := l.PCall(l.GetTop()-1, lua.MultRet, nil); err != nil {
		l.Push(lua.LFalse)
		raised, ok := err.(*lua.ApiError)
		if !ok {
			l.Push(lua.LString(err.Error()))
			return 2
		}
		result := raised.Object
		if t, ok := result.(*lua.LTable); ok {
			if text, ok := t.RawGetString("err").(lua.LString); ok {
				result = text
			}
		}
		l.Push(result)
		return 2
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

func sha1Of(l *lua.LState) int {
	if l.GetTop() != 1 {
		l.Error(errorTable(l, "ERR wrong number of arguments"), 1)
	}
	l.Push(lua.LString(sha1hex(lua.LVAsString(l.Get(1)))))
	return 1
}

func errorReply(l *lua.LState) int {
	text, ok := onlyText(l)
	if !ok {
		return 1
	}
	l.Push(errorTable(l, withCode(text)))
	return 1
}

func statusReply(l *lua.LState) int {
	text, ok := onlyText(l)
	if !ok {
		return 1
	}
	t := l.CreateTable(0, 1)
	t.RawSetString("ok", lua.LString(text))
	l.Push(t)
	return 1
}

// onlyText returns the only argument. If it is not a text, it pushes the error.
func onlyText(l *lua.LState) (string, bool) {
	if text, ok := l.Get(1).(lua.LString); ok && l.GetTop() == 1 {
		return string(text), true
	}
	l.Push(errorTable(l, "ERR wrong number or type of arguments"))
	return "", false
}

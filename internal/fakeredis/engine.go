package fakeredis

import (
	"fmt"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// engine is an interpreter of Lua. Scripts leave nothing behind in it, so any engine may run any script
// of any server.
type engine struct {
	state     *lua.LState
	functions map[*script]*lua.LFunction
	handler   *lua.LFunction // of errors that no pcall catches
	args      []string       // of the command that is being called

	server *Server
	client *Client
	wrote  bool // the script has called a command that may write
}

var engines = sync.Pool{New: func() any { return newEngine() }}

func newEngine() *engine {
	e := &engine{
		state: lua.NewState(lua.Options{
			SkipOpenLibs:    true,
			CallStackSize:   200,
			RegistryMaxSize: 1 << 20,
		}),
		functions: map[*script]*lua.LFunction{},
	}
	e.handler = e.state.NewFunction(locate)
	e.open()
	return e
}

func (e *engine) run(s *Server, c *Client, found *script, keys, argv []string) Reply {
	e.server, e.client, e.wrote = s, c, false
	f := e.functions[found]
	if f == nil {
		f = e.state.NewFunctionFromProto(found.proto)
		e.functions[found] = f
	}
	e.state.G.Global.RawSetString("KEYS", e.list(keys))
	e.state.G.Global.RawSetString("ARGV", e.list(argv))
	e.state.Push(f)
	if err := e.state.PCall(0, 1, e.handler); err != nil {
		e.state.SetTop(0)
		return scriptError(err, found.sha)
	}
	result := e.state.Get(-1)
	e.state.SetTop(0)
	return toReply(result)
}

func (e *engine) list(texts []string) *lua.LTable {
	t := e.state.CreateTable(len(texts), 0)
	for _, text := range texts {
		t.Append(lua.LString(text))
	}
	return t
}

// locate is called with an error at the place where it was raised. It makes the error a table with its
// position in the script.
func locate(l *lua.LState) int {
	failure, ok := l.Get(1).(*lua.LTable)
	if !ok {
		failure = errorTable(l, "ERR "+l.Get(1).String())
	}
	for level := 1; ; level++ {
		frame, ok := l.GetStack(level)
		if !ok {
			break
		}
		if _, err := l.GetInfo("Sl", frame, lua.LNil); err == nil && frame.What != "G" {
			failure.RawSetString("line", lua.LNumber(frame.CurrentLine))
			break
		}
	}
	l.Push(failure)
	return 1
}

// scriptError returns the reply to a script that has raised an error.
func scriptError(err error, sha string) Reply {
	raised, ok := err.(*lua.ApiError)
	if !ok {
		return Err(printable(fmt.Sprintf("ERR Error running script %s, %.100s", sha, err)))
	}
	failure, ok := raised.Object.(*lua.LTable)
	if !ok {
		return Err(printable(fmt.Sprintf("ERR Error running script %s, %.100s", sha, raised.Object)))
	}
	text := errorText(failure.RawGetString("err"))
	if line := failure.RawGetString("line"); line != lua.LNil {
		text += fmt.Sprintf(" script: %s, on @user_script:%s.", sha, line)
	}
	return Err(printable(text))
}

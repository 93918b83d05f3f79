package fakeredis

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

var scriptCommands = []command{
	{"eval", -3, noScript, countKeys, eval},
	{"evalsha", -3, noScript, countKeys, evalSHA},
	{"script", -2, 0, noKeys, nil},
	{"script|flush", -2, noScript, noKeys, scriptFlush},
	{"script|load", 3, noScript, noKeys, scriptLoad},
	{"script|exists", -3, noScript, noKeys, scriptExists},
}

// script is a compiled script. It never changes.
type script struct {
	sha   string
	proto *lua.FunctionProto
}

// compiled has all scripts that this process has compiled, by their texts. All servers share it.
var compiled sync.Map // of *script

func compile(text string) (*script, error) {
	if found, ok := compiled.Load(text); ok {
		return found.(*script), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, "user_script")
	if err != nil {
		return nil, err
	}
	found, _ := compiled.LoadOrStore(strings.Clone(text), &script{sha: sha1hex(text), proto: proto})
	return found.(*script), nil
}

func sha1hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// load makes a script known to EVALSHA.
func (s *Server) load(text string) (*script, Reply) {
	found, err := compile(text)
	if err != nil {
		return nil, Err(printable(fmt.Sprint("ERR Error compiling script (new function): ", err)))
	}
	if s.scripts[found.sha] == nil {
		scripts := maps.Clone(s.scripts)
		if scripts == nil {
			scripts = map[string]*script{}
		}
		scripts[found.sha] = found
		s.scripts = scripts
	}
	return found, Reply{}
}

func scriptLoad(s *Server, _ *Client, args []string) Reply {
	found, refusal := s.load(args[2])
	if found == nil {
		return refusal
	}
	return Bulk(found.sha)
}

func scriptExists(s *Server, _ *Client, args []string) Reply {
	list := make([]Reply, 0, len(args)-2)
	for _, sha := range args[2:] {
		var n int64
		if s.scripts[sha] != nil {
			n = 1
		}
		list = append(list, Int(n))
	}
	return Array(list...)
}

func scriptFlush(s *Server, _ *Client, args []string) Reply {
	if len(args) > 3 || len(args) == 3 && !isFlushMode(args[2]) {
		return Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	s.scripts = nil
	return OK
}

func eval(s *Server, c *Client, args []string) Reply {
	return s.evaluate(c, args, func() (*script, Reply) { return s.load(args[1]) })
}

func evalSHA(s *Server, c *Client, args []string) Reply {
	if len(args[1]) != 2*sha1.Size {
		return Err(errNoScript)
	}
	return s.evaluate(c, args, func() (*script, Reply) {
		found := s.scripts[args[1]]
		if found == nil {
			found = s.scripts[strings.ToLower(args[1])]
		}
		return found, Err(errNoScript)
	})
}

func (s *Server) evaluate(c *Client, args []string, find func() (*script, Reply)) Reply {
	n, ok := parseInt(args[2])
	switch {
	case !ok:
		return Err(errNotInt)
	case n > int64(len(args)-3):
		return Err("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return Err("ERR Number of keys can't be negative")
	}
	found, refusal := find()
	if found == nil {
		return refusal
	}
	e := engines.Get().(*engine)
	defer engines.Put(e)
	s.running = e
	defer func() { s.running = nil }()
	return e.run(s, c, found, args[3:3+n], args[3+n:])
}

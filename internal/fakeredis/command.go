package fakeredis

import (
	"fmt"
	"strings"
)

// flags are the flags of Redis's command table that matter here.
type flags uint16

const (
	write    flags = 1 << iota
	denyOOM        // refused when memory is used up
	noScript       // not allowed in a script
	loading        // allowed while the data is being read from disk
	busy           // allowed while a script does not end
	channels       // its channels are checked
	pubsub         // allowed to a client with subscriptions
)

// keysAt says which arguments are keys.
type keysAt uint8

const (
	noKeys    keysAt = iota
	firstKey         // the first
	firstTwo         // the first two
	allKeys          // all
	countKeys        // as many as the second argument says, behind it
)

// command is an entry of the command table.
type command struct {
	name  string // in lower case; a subcommand's name is "command|subcommand"
	arity int    // number of arguments including the name; negative: at least that many
	flags flags
	keys  keysAt
	run   func(s *Server, c *Client, args []string) Reply
}

// commands has each command under its name in lower and in upper case. A command that has subcommands has
// no function.
var commands = map[string]*command{}

func init() {
	for _, list := range [][]command{keyCommands, stringCommands, sortedCommands, pubsubCommands, scriptCommands, otherCommands} {
		for _, c := range list {
			commands[c.name] = &c
			commands[strings.ToUpper(c.name)] = &c
		}
	}
}

// lookupCommand finds the command that some arguments name.
func lookupCommand(args []string) *command {
	found := commands[args[0]]
	if found == nil {
		found = commands[strings.ToLower(args[0])]
	}
	if found != nil && found.run == nil && len(args) > 1 {
		return commands[found.name+"|"+strings.ToLower(args[1])]
	}
	return found
}

func (c *command) takes(n int) bool { return n == c.arity || c.arity < 0 && n >= -c.arity }

// find returns the command of a client, or nil and the error.
func (s *Server) find(args []string) (*command, Reply) {
	found := lookupCommand(args)
	switch {
	case found == nil && commands[strings.ToLower(args[0])] != nil:
		return nil, Err(printable(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try %s HELP.", cString(args[1]), strings.ToUpper(args[0]))))
	case found == nil:
		var rest strings.Builder
		for _, arg := range args[1:] {
			if rest.Len() >= 128 {
				break
			}
			fmt.Fprintf(&rest, "'%.*s' ", 128-rest.Len(), cString(arg))
		}
		return nil, Err(printable(fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: %s", cString(args[0]), &rest)))
	case !found.takes(len(args)):
		return nil, Err("ERR wrong number of arguments for '" + found.name + "' command")
	}
	return found, Reply{}
}

// printable makes a text fit on one line.
func printable(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}

var otherCommands = []command{
	{"ping", -1, pubsub, noKeys, ping},
	{"time", 1, loading, noKeys, timeOf},
	{"role", 1, noScript | loading, noKeys, role},
	{"auth", -2, noScript | loading | busy, noKeys, accept},
	{"select", 2, loading, noKeys, accept},
	{"client", -2, noScript | loading, noKeys, accept},
}

func accept(*Server, *Client, []string) Reply { return OK }

func ping(s *Server, c *Client, args []string) Reply {
	switch {
	case len(args) > 2:
		return Err("ERR wrong number of arguments for 'ping' command")
	case s.running == nil && c.subscribed():
		text := ""
		if len(args) == 2 {
			text = args[1]
		}
		return Array(Bulk("pong"), Bulk(text))
	case len(args) == 2:
		return Bulk(args[1])
	default:
		return Simple("PONG")
	}
}

func timeOf(s *Server, _ *Client, _ []string) Reply {
	us := s.now.UnixMicro()
	return Array(Bulk(fmt.Sprint(us/1e6)), Bulk(fmt.Sprint(us%1e6)))
}

func role(s *Server, _ *Client, _ []string) Reply {
	if s.Replica {
		return Array(Bulk("slave"), Bulk("127.0.0.1"), Int(6379), Bulk("connected"), Int(0))
	}
	return Array(Bulk("master"), Int(0), Array())
}

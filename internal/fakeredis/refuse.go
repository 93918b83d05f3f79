package fakeredis

import (
	"strconv"
	"strings"
)

// The texts of Redis 7.0.
const (
	errSyntax    = "ERR syntax error"
	errNotFloat  = "ERR value is not a valid float"
	errNotRange  = "ERR min or max is not a float"
	errNotInt    = "ERR value is not an integer or out of range"
	errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNoKey     = "ERR no such key"
	errNoScript  = "NOSCRIPT No matching script. Please use EVAL."
	errFull      = "OOM command not allowed when used memory > 'maxmemory'."
	errReplica   = "READONLY You can't write against a read only replica."
	errLoading   = "LOADING Redis is loading the dataset in memory"
	errBusy      = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
)

// denial is the reason why a user may not run a command.
type denial uint8

const (
	permitted denial = iota
	deniedCommand
	deniedKey
	deniedChannel
)

// refuse reports whether a client's command is refused. It checks the reasons in the same order as Redis.
func (s *Server) refuse(c *Client, cmd *command, args []string) (Reply, bool) {
	switch s.permission(cmd, args) {
	case deniedCommand:
		return Err("NOPERM this user has no permissions to run the '" + cmd.name + "' command"), true
	case deniedKey:
		return Err("NOPERM this user has no permissions to access one of the keys used as arguments"), true
	case deniedChannel:
		return Err("NOPERM this user has no permissions to access one of the channels used as arguments"), true
	}
	switch {
	case s.lacksMemory() && cmd.flags&denyOOM != 0:
		return Err(errFull), true
	case s.Replica && cmd.flags&write != 0:
		return Err(errReplica), true
	case cmd.flags&pubsub == 0 && c.subscribed():
		return Err("ERR Can't execute '" + cmd.name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"), true
	case s.Loading && cmd.flags&loading == 0:
		return Err(errLoading), true
	case s.Busy && cmd.flags&busy == 0:
		return Err(errBusy), true
	}
	return Reply{}, false
}

// refuseScript reports whether a command of a script is refused. After a write, no command is refused
// because of the state of the server, since a script cannot be stopped halfway.
func (s *Server) refuseScript(cmd *command, args []string, wrote bool) (Reply, bool) {
	switch s.permission(cmd, args) {
	case deniedCommand:
		return Err("ERR The user executing the script can't run this command or subcommand"), true
	case deniedKey:
		return Err("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"), true
	case deniedChannel:
		return Err("ERR The user executing the script can't publish to the channel mentioned in the command"), true
	}
	switch {
	case wrote:
	case s.Replica && cmd.flags&write != 0:
		return Err(errReplica), true
	case s.lacksMemory() && cmd.flags&denyOOM != 0:
		return Err(errFull), true
	}
	return Reply{}, false
}

// lacksMemory reports whether the limit of memory counts. It does not count while another client's script
// runs, and never for a replica.
func (s *Server) lacksMemory() bool { return s.Full && !s.Busy && !s.Replica }

// permission checks the command first, then its keys, then its channels.
func (s *Server) permission(cmd *command, args []string) denial {
	if len(s.NoPerm) > 0 && (s.NoPerm[cmd.name] || s.NoPerm[container(cmd.name)]) {
		return deniedCommand
	}
	if s.NoKeys != nil {
		for _, key := range cmd.keysOf(args) {
			if s.NoKeys(key) {
				return deniedKey
			}
		}
	}
	if s.NoChannels && cmd.flags&channels != 0 {
		return deniedChannel
	}
	return permitted
}

// container returns the part of a name before the |.
func container(name string) string {
	for i := range len(name) {
		if name[i] == '|' {
			return name[:i]
		}
	}
	return name
}

// keysOf returns the keys among the arguments.
func (c *command) keysOf(args []string) []string {
	switch c.keys {
	case firstKey:
		return args[1:2]
	case firstTwo:
		return args[1:3]
	case allKeys:
		return args[1:]
	case countKeys:
		if n := leadingInt(args[2]); n > 0 && n <= len(args)-3 {
			return args[3 : 3+n]
		}
	}
	return nil
}

// leadingInt returns the number at the beginning of a text, or 0. Redis is less strict here than when it
// executes the command.
func leadingInt(text string) int {
	text = strings.TrimPrefix(strings.TrimLeft(text, spaces), "+")
	end := 0
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	n, _ := strconv.Atoi(text[:end])
	return n
}

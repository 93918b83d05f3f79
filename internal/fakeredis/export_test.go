package fakeredis

import "strings"

// What only these tests see, which ask a real Redis as well and so are of another package.

const (
	ErrNoScript = errNoScript
	ErrFull     = errFull
	ErrLoading  = errLoading
	ErrBusy     = errBusy
)

var SHA1Hex = sha1hex

// Server returns the server of a connection.
func (c *Client) Server() *Server { return c.server }

// Stored returns how many keys are in memory, expired or not.
func (s *Server) Stored() int { return len(s.keys) }

// Raw returns the text of a key, expired or not, and whether it is a string.
func (s *Server) Raw(key string) (text string, isString, ok bool) {
	e, ok := s.keys[key]
	return e.text, e.isString(), ok
}

// CommandNames returns the name of each command that can be executed.
func CommandNames() (names []string) {
	for name, c := range commands {
		if c.run != nil && name == strings.ToLower(name) {
			names = append(names, name)
		}
	}
	return names
}

// NameOf returns the name of the command that arguments call, or "".
func NameOf(args []string) string {
	if c := lookupCommand(args); c != nil {
		return c.name
	}
	return ""
}

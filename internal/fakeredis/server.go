package fakeredis

import (
	"maps"
	"time"
)

// Server is a Redis with one database. Its fields are its faults; set them between two commands. A set in
// a field must be replaced and not changed, since clones share it.
//
// A Server must be used by one goroutine at a time. Its clones are independent of it.
type Server struct {
	// Full: memory is used up, and nothing may be evicted.
	Full bool
	// Replica: it is a replica that refuses writes and serves reads.
	Replica bool
	// Loading: it is reading its data from disk.
	Loading bool
	// Busy: another client's script does not end.
	Busy bool
	// NoPerm has the commands that its users may not run, in lower case, such as
	// "pttl", "script|load" or "script" for all of its subcommands.
	NoPerm map[string]bool
	// NoKeys reports whether its users may not access a key. Nil: they may access all.
	NoKeys func(key string) bool
	// NoChannels: its users may not publish or subscribe to any channel.
	NoChannels bool

	keys     map[string]entry
	scripts  map[string]*script // by SHA-1; replaced when it changes, since clones share it
	channels map[string][]*Client
	patterns []subscription

	now     time.Time // of the command that is being executed
	ms      int64     // the same as Unix ms
	running *engine   // of the script that is being executed
	sweep   int       // commands until expired keys are deleted
}

// New returns a server without data.
func New() *Server {
	return &Server{keys: map[string]entry{}}
}

// Clone returns a server with the same data, scripts and faults, and without clients.
func (s *Server) Clone() *Server {
	clone := *s
	clone.keys = maps.Clone(s.keys)
	clone.channels, clone.patterns = nil, nil
	return &clone
}

// Restart forgets the scripts, all subscriptions and, unless keep, the data. The faults stay.
func (s *Server) Restart(keep bool) {
	s.scripts = nil
	for _, clients := range s.channels {
		for _, c := range clients {
			c.channels = nil
		}
	}
	for _, p := range s.patterns {
		p.client.patterns = nil
	}
	s.channels, s.patterns = nil, nil
	if !keep {
		s.keys = map[string]entry{}
	}
}

// Client is one connection to a Server.
type Client struct {
	server   *Server
	push     func(Reply)
	channels []string // that it listens to, in order of subscription
	patterns []string
}

// Connect returns a new connection. push gets what the server sends without being asked: messages, and
// the confirmations of a SUBSCRIBE to several channels, except for the last, which is the reply. So the
// calls of push and the returns of Do are in the same order as on the wire. push may be nil. It must not
// call the server.
func (s *Server) Connect(push func(Reply)) *Client {
	if push == nil {
		push = func(Reply) {}
	}
	return &Client{server: s, push: push}
}

// Close ends the subscriptions of the client.
func (c *Client) Close() {
	for len(c.channels) > 0 {
		c.leave(c.channels[0])
	}
	for len(c.patterns) > 0 {
		c.leavePattern(c.patterns[0])
	}
}

// Do executes a command at a given time. A script is one command: time stands still in it. If the time is
// before that of the last command, the clock was set back.
func (c *Client) Do(now time.Time, args ...string) Reply {
	s := c.server
	s.now, s.ms = now, now.UnixMilli()
	if s.sweep--; s.sweep < 0 {
		s.sweep = 4096
		s.deleteExpired()
	}
	if len(args) == 0 {
		return Err("ERR no command")
	}
	command, refusal := s.find(args)
	if command == nil {
		return refusal
	}
	if refusal, refused := s.refuse(c, command, args); refused {
		return refusal
	}
	return command.run(s, c, args)
}

package fakeredis

import (
	"slices"
	"strings"
)

var pubsubCommands = []command{
	{"publish", 3, channels | loading, noKeys, publish},
	{"subscribe", -2, channels | noScript | loading | pubsub, noKeys, subscribe},
	{"unsubscribe", -1, noScript | loading | pubsub, noKeys, unsubscribe},
	{"psubscribe", -2, channels | noScript | loading | pubsub, noKeys, psubscribe},
	{"punsubscribe", -1, noScript | loading | pubsub, noKeys, punsubscribe},
	{"pubsub", -2, 0, noKeys, nil},
	{"pubsub|numsub", -2, loading, noKeys, numSub},
	{"pubsub|numpat", 2, loading, noKeys, numPat},
}

// subscription is a subscription to a pattern: a channel, or a prefix of channels and a *.
type subscription struct {
	pattern string
	client  *Client
}

func (p subscription) matches(channel string) bool {
	if head, ok := strings.CutSuffix(p.pattern, "*"); ok {
		return strings.HasPrefix(channel, head)
	}
	return channel == p.pattern
}

// subscribed reports whether a client has subscriptions, so that it may only listen.
func (c *Client) subscribed() bool { return len(c.channels)+len(c.patterns) > 0 }

func (c *Client) join(channel string) {
	if slices.Contains(c.channels, channel) {
		return
	}
	c.channels = append(c.channels, channel)
	if c.server.channels == nil {
		c.server.channels = map[string][]*Client{}
	}
	c.server.channels[channel] = append(c.server.channels[channel], c)
}

func (c *Client) leave(channel string) {
	c.channels = without(c.channels, channel)
	if rest := without(c.server.channels[channel], c); len(rest) > 0 {
		c.server.channels[channel] = rest
	} else {
		delete(c.server.channels, channel)
	}
}

func (c *Client) joinPattern(pattern string) {
	if !slices.Contains(c.patterns, pattern) {
		c.patterns = append(c.patterns, pattern)
		c.server.patterns = append(c.server.patterns, subscription{pattern, c})
	}
}

func (c *Client) leavePattern(pattern string) {
	c.patterns = without(c.patterns, pattern)
	c.server.patterns = without(c.server.patterns, subscription{pattern, c})
}

// without removes a value from a list, in place.
func without[T comparable](list []T, value T) []T {
	if i := slices.Index(list, value); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func publish(s *Server, _ *Client, args []string) Reply {
	channel, message := Bulk(args[1]), Bulk(args[2])
	var n int64
	for _, c := range s.channels[args[1]] {
		c.push(Array(Bulk("message"), channel, message))
		n++
	}
	for _, p := range s.patterns {
		if p.matches(args[1]) {
			p.client.push(Array(Bulk("pmessage"), Bulk(p.pattern), channel, message))
			n++
		}
	}
	return Int(n)
}

func numSub(s *Server, _ *Client, args []string) Reply {
	list := make([]Reply, 0, 2*(len(args)-2))
	for _, channel := range args[2:] {
		list = append(list, Bulk(channel), Int(int64(len(s.channels[channel]))))
	}
	return Array(list...)
}

func numPat(s *Server, _ *Client, _ []string) Reply {
	different := map[string]bool{}
	for _, p := range s.patterns {
		different[p.pattern] = true
	}
	return Int(int64(len(different)))
}

// confirm makes changes and tells the client of each. The last confirmation is the reply.
func (c *Client) confirm(what string, names []string, change func(name string)) Reply {
	var last Reply
	for i, name := range names {
		if i > 0 {
			c.push(last)
		}
		change(name)
		last = Array(Bulk(what), Bulk(name), c.count())
	}
	if len(names) == 0 { // there was no subscription to end
		last = Array(Bulk(what), Nil, c.count())
	}
	return last
}

func (c *Client) count() Reply { return Int(int64(len(c.channels) + len(c.patterns))) }

func subscribe(_ *Server, c *Client, args []string) Reply {
	return c.confirm("subscribe", args[1:], c.join)
}

func psubscribe(_ *Server, c *Client, args []string) Reply {
	return c.confirm("psubscribe", args[1:], c.joinPattern)
}

func unsubscribe(_ *Server, c *Client, args []string) Reply {
	names := args[1:]
	if len(names) == 0 {
		names = slices.Clone(c.channels)
	}
	return c.confirm("unsubscribe", names, c.leave)
}

func punsubscribe(_ *Server, c *Client, args []string) Reply {
	names := args[1:]
	if len(names) == 0 {
		names = slices.Clone(c.patterns)
	}
	return c.confirm("punsubscribe", names, c.leavePattern)
}

package world

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// These functions carry messages, and apply faults to them. All are called with the world's mu held.

// send sends a command to Redis.
func (c *conn) send(args []string) {
	if strings.EqualFold(args[0], "SUBSCRIBE") {
		c.subscribed = true
	}
	if len(args) > 1 && strings.EqualFold(args[0], "EVAL") {
		learn(args[1])
	}
	delay := c.travel()
	if late, hit := c.struck(plan.Slow); hit {
		delay += late
	}
	if until := c.process.unreachable(); until > 0 {
		delay += until - c.world.now()
	}
	if late, hit := c.struck(plan.CutLate); hit {
		c.note("is reset; what it carries arrives late", nil, fakeredis.Reply{})
		delay += late
		c.sendDown(c.travel(), func() { c.crack(reset) })
	}
	if late, hit := c.struck(plan.DoubleCommands); hit {
		c.world.at(c.world.now()+delay+late, func() { c.again(args) })
	}
	_, cut := c.struck(plan.Cut)
	if before := c.rand.IntN(2) == 0; cut && before {
		c.sendUp(delay, func() {
			c.note("is cut before", args, fakeredis.Reply{})
			c.hangUp()
		})
		return
	}
	c.sendUp(delay, func() { c.execute(args, cut) })
}

// sendUp makes something arrive at Redis, after everything that was sent before.
func (c *conn) sendUp(delay time.Duration, what func()) {
	c.up = append(c.up, what)
	c.upLast = max(c.world.now()+delay, c.upLast+1)
	c.world.at(c.upLast, c.arriveUp)
}

func (c *conn) arriveUp() {
	w := c.world
	if w.paused > w.now() { // Redis reads nothing
		w.at(w.paused, c.arriveUp)
		return
	}
	next := c.up[0]
	c.up = c.up[1:]
	if !c.silent {
		next()
	}
}

// sendDown makes something arrive at the client, after everything that was sent before.
func (c *conn) sendDown(delay time.Duration, what func()) {
	if until := c.process.unreachable(); until > 0 {
		delay += until - c.world.now()
	}
	c.down = append(c.down, what)
	c.dnLast = max(c.world.now()+delay, c.dnLast+1)
	c.world.at(c.dnLast, func() {
		next := c.down[0]
		c.down = c.down[1:]
		if !c.silent {
			next()
		}
	})
}

// execute makes Redis execute a command.
func (c *conn) execute(args []string, cut bool) {
	if c.server == nil {
		return // Redis has forgotten the connection
	}
	reply := c.server.Do(time.Now(), args...)
	c.note("", args, reply)
	if cut {
		c.note("is cut behind that", nil, fakeredis.Reply{})
		c.hangUp()
		return
	}
	text := reply.AppendTo(nil)
	c.reply(args[0], text)
	if late, hit := c.struck(plan.DoubleReplies); hit {
		c.note("gets the reply twice", nil, fakeredis.Reply{})
		c.sendDown(late, func() { c.receive(text) })
	}
}

// again makes Redis execute a command a second time. The reply is dropped.
func (c *conn) again(args []string) {
	if c.severed {
		return
	}
	nobody := c.world.redis.Connect(func(fakeredis.Reply) {})
	defer nobody.Close()
	if !strings.EqualFold(args[0], "SUBSCRIBE") {
		c.note("again", args, nobody.Do(time.Now(), args...))
	}
}

// A swap is a list of replies. The first waits until it can change places with another, and holds back
// the replies in between.
type swap struct {
	command string // the command of the other reply; "": any
	texts   [][]byte
}

// reply sends the reply to a command.
func (c *conn) reply(command string, text []byte) {
	if c.swap == nil {
		late, hit := c.struck(plan.Swap)
		if !hit || c.subscribed {
			c.answer(text)
			return
		}
		s := &swap{texts: [][]byte{text}}
		if c.rand.IntN(4) > 0 {
			s.command = command
		}
		c.swap = s
		c.world.at(c.world.now()+late, func() { c.letGo(s) })
		return
	}
	s := c.swap
	s.texts = append(s.texts, text)
	if s.command == "" || s.command == command {
		last := len(s.texts) - 1
		s.texts[0], s.texts[last] = text, s.texts[0]
		c.note("gets a reply in place of that of "+strconv.Itoa(last)+" before, and the other way round", nil, fakeredis.Reply{})
		c.letGo(s)
	}
}

// letGo sends the replies that wait, if they still do.
func (c *conn) letGo(s *swap) {
	if c.swap != s {
		return
	}
	c.swap = nil
	for _, text := range s.texts {
		c.answer(text)
	}
}

// answer sends bytes to the client.
func (c *conn) answer(text []byte) {
	delay := c.travel()
	if late, hit := c.struck(plan.Slow); hit {
		delay += late
	}
	c.sendDown(delay, func() { c.receive(text) })
}

func (c *conn) receive(text []byte) {
	if !c.closed && c.broken == nil {
		c.arrived = append(c.arrived, text...)
		c.rouse()
	}
}

// push sends a message that is no reply.
func (c *conn) push(message fakeredis.Reply) {
	if _, lost := c.struck(plan.Mute); lost {
		c.note("does not get the message", nil, message)
		return
	}
	c.answer(message.AppendTo(nil))
}

// note adds to the trace.
func (c *conn) note(what string, args []string, reply fakeredis.Reply) {
	c.world.trace.add(event{at: c.world.now(), what: what, process: c.process.number, conn: c.number, command: args, reply: reply})
}

// cutCommand returns the first command in b, if it is complete, and the rest.
func cutCommand(b []byte) (args []string, rest []byte, ok bool) {
	n, rest, ok := cutNumber(b, '*')
	for ; ok && n > 0; n-- {
		var size int
		if size, rest, ok = cutNumber(rest, '$'); !ok || len(rest) < size+2 {
			return nil, nil, false
		}
		args = append(args, string(rest[:size]))
		rest = rest[size+2:]
	}
	return args, rest, ok
}

func cutNumber(b []byte, kind byte) (n int, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || line[0] != kind {
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(line[1:]))
	return n, rest, err == nil
}

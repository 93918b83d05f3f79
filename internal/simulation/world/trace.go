package world

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

// An event is something that happened.
type event struct {
	at      time.Duration
	what    string
	process int // -1: none
	conn    int // of the process
	request int // 0: none
	text    string
	command []string // that Redis executed
	reply   fakeredis.Reply
}

// A trace is everything that happened, in order.
type trace struct{ events []event }

func (t *trace) add(e event) { t.events = append(t.events, e) }

// sum returns a hash of the trace, without the parts that differ between processes of the operating
// system.
func (t *trace) sum() uint64 {
	h := fnv.New64a()
	for _, e := range t.events {
		e.addTo(h)
	}
	return h.Sum64()
}

func (e event) addTo(h hash.Hash64) {
	fmt.Fprintln(h, e.at, e.what, e.process, e.conn, e.request, e.text)
	for i, arg := range e.command {
		if i != numberAt(e.command) {
			fmt.Fprint(h, own(arg), " ")
		}
	}
}

// numberAt returns the index of the argument that is the number of its call, or -1. A script has it behind its keys.
func numberAt(args []string) int {
	switch name := strings.ToUpper(args[0]); {
	case name == "PING":
		return len(args) - 1
	case (name == "EVALSHA" || name == "EVAL") && len(args) > 2:
		if keys, err := strconv.Atoi(args[2]); err == nil && 3+keys < len(args) {
			return 3 + keys
		}
	}
	return -1
}

// own removes from an argument the parts that depend on this process of the operating system: of a token,
// all but its random part.
func own(arg string) string {
	if len(arg) > 17 && arg[16] == ' ' {
		return arg[:16]
	}
	return arg
}

// Lines returns the events as lines for readers. It leaves out events that do not concern any of the
// given sessions; without sessions it returns all.
func (w *World) Lines(sessions []string) (lines []string) {
	for _, e := range w.trace.events {
		if w.concerns(e, sessions) {
			lines = append(lines, w.line(e))
		}
	}
	return lines
}

// concerns reports whether an event has to do with some sessions.
func (w *World) concerns(e event, sessions []string) bool {
	switch {
	case len(sessions) == 0:
		return true
	case e.request != 0:
		r := w.seen[e.request]
		if r == nil { // an ending
			return true
		}
		return slices.Contains(sessions, r.Cookie) || slices.Contains(sessions, r.Member) || slices.Contains(sessions, r.SetID)
	case len(e.command) == 0:
		return true
	}
	return slices.ContainsFunc(sessions, func(id string) bool {
		return slices.ContainsFunc(e.command, func(arg string) bool { return mentions(arg, id) })
	})
}

func (w *World) line(e event) string {
	b := fmt.Appendf(nil, "%14.6f ms  ", float64(e.at)/1e6)
	switch {
	case e.process < 0:
		b = fmt.Appendf(b, "%-14s", "")
	case e.request != 0:
		b = fmt.Appendf(b, "P%d  #%-9d", e.process, e.request)
	default:
		b = fmt.Appendf(b, "P%d  c%-9d", e.process, e.conn)
	}
	b = append(b, e.what...)
	if e.text != "" {
		b = fmt.Appendf(b, " %s", w.Readable(e.text))
	}
	if len(e.command) > 0 {
		b = fmt.Appendf(b, " %s -> %s", w.command(e.command), w.Readable(unframed(e.reply)))
	}
	return string(b)
}

// unframed returns a reply without the number of its call, which tells readers nothing and differs from
// run to run.
func unframed(r fakeredis.Reply) string {
	switch list := r.List(); {
	case r.Kind() == fakeredis.KindInt && r.Int() > 3:
		return fmt.Sprint(r.Int() & 3)
	case len(list) > 1 && list[0].Kind() == fakeredis.KindInt:
		return fmt.Sprint(list[:len(list)-1])
	}
	return fmt.Sprint(r)
}

// command formats a command for readers: a script by its name, and tokens and IDs by their first letters.
func (w *World) command(args []string) string {
	text := slices.Clone(args)
	if name := strings.ToUpper(args[0]); name == "EVALSHA" || name == "EVAL" {
		text = text[1:]
		text[0] = name + " " + scriptName(args)
		if keys, err := strconv.Atoi(text[1]); err == nil && 2+keys < len(text) {
			text = slices.Delete(text, 2+keys, 3+keys) // the call's number
		}
		text = slices.Delete(text, 1, 2) // how many keys
	}
	for i, arg := range text {
		if text[i] = w.Readable(arg); arg == "" {
			text[i] = "''"
		}
	}
	return strings.Join(text, " ")
}

// Readable shortens hosts and random parts of a text, so that a line can be read.
func (w *World) Readable(arg string) string {
	for i, id := range w.ids {
		name := fmt.Sprintf("S%d", i+1)
		arg = strings.ReplaceAll(arg, id, name)
		if tag, rest, ofUser := strings.Cut(id, "."); ofUser {
			arg = strings.ReplaceAll(arg, "{"+tag+"}:"+rest, "{"+name+"}")
			arg = strings.ReplaceAll(arg, rest, name)
		}
	}
	for _, r := range tokens {
		arg = r.pattern.ReplaceAllString(arg, r.by)
	}
	if len(arg) > 300 {
		arg = arg[:300] + "…"
	}
	return arg
}

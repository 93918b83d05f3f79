package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A holder is the request that has a session's lock, or the process that is about to get it.
type holder struct {
	Session string     `json:"session"`
	Process string     `json:"process,omitempty"` // host/pid
	Request string     `json:"request,omitempty"` // its method and route, or label
	Since   *time.Time `json:"since,omitempty"`   // by the clock of its host
	Held    float64    `json:"held_seconds"`      // from then to now
	Lease   float64    `json:"lease_seconds"`     // that is left
	Endless bool       `json:"endless,omitempty"` // the lock has no timeout, which only another program can have done
	Waiting int        `json:"waiting"`           // other processes, not requests
	Passing bool       `json:"passing"`           // the lock is on its way to a waiting process
}

// turn begins the value of a lock that is being handed to a process of its queue, and a process's entry in
// the queue.
const turn = "latchkey:wake:"

// newHolder reads a lock and its queue.
func newHolder(id, value, queue string, left time.Duration, now time.Time) holder {
	const noTimeout = -time.Millisecond // as PTTL says it
	h := holder{Session: id, Lease: seconds(max(0, left)), Endless: left == noTimeout, Waiting: len(strings.Fields(queue))}
	if strings.HasPrefix(strings.TrimPrefix(value, "-"), turn) {
		h.Passing = true
		return h
	}
	if o, ok := lease.ParseToken(value); ok {
		since := o.Since.UTC()
		h.Since, h.Held = &since, seconds(max(0, now.Sub(since)))
		h.Process, h.Request = o.Host+"/"+strconv.Itoa(o.PID), o.Label
	}
	return h
}

// who returns the process, or a text in its place.
func (h holder) who() string {
	switch {
	case h.Passing:
		return "(passing to the next process)"
	case h.Process == "":
		return "(unknown)"
	}
	return h.Process
}

// String is for one line.
func (h holder) String() string {
	s := "held by " + strings.TrimSpace(h.who()+" "+h.Request)
	if h.Since != nil {
		s += " for " + h.held()
	}
	if h.Waiting > 0 {
		s += fmt.Sprintf("; %s waiting", otherProcesses(h.Waiting))
	}
	return s
}

// otherProcesses writes 1 other process, 2 other processes. Requests that wait in the holder's own process are not known.
func otherProcesses(n int) string {
	if n == 1 {
		return "1 other process"
	}
	return grouped(int64(n)) + " other processes"
}

func (h holder) held() string {
	if h.Since == nil {
		return "-"
	}
	d := time.Duration(h.Held * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return roughly(d)
}

// lease says for how long the lock lasts if the holder does not extend its lease.
func (h holder) lease() string {
	if h.Endless {
		return "endless"
	}
	return roughly(time.Duration(h.Lease * float64(time.Second)))
}

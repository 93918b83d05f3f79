package history

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Streams are requests that stay open with a session, among others that end sessions. Check asks whether each stream
// ended soon after its session, and none before. The zero value is a history in which nothing has happened.
//
// A session is named by what its data say, not by its ID. So it keeps its name while it gets new IDs, and has another
// name than the session that takes its place. A name may belong to one user, from a login on.
type Streams struct {
	mu      sync.Mutex // guards all below
	streams []*Stream
	endings []*Ending
	logins  []*login
}

// A Stream is one request that stays open.
type Stream struct {
	Session string
	Began   time.Time // when it had the session open
	Over    time.Time // when its context ended; zero: it is open
	Ended   bool      // the cause was session.ErrEnded

	of *Streams
}

// An Ending is a request that ends a session, or all sessions of a user.
type Ending struct {
	Session, User string // one of them is empty
	Called        time.Time
	Returned      time.Time // zero: without an answer, so it may have been done, or not
}

// A login is a request by which a session becomes that of a user.
type login struct {
	session, user    string
	called, returned time.Time // returned may be zero, as that of an Ending
}

// Open records a stream that has its session open.
func (h *Streams) Open(session string) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &Stream{Session: session, Began: time.Now(), of: h}
	h.streams = append(h.streams, s)
	return s
}

// Close records that the context has ended. ended tells whether the cause was session.ErrEnded.
func (s *Stream) Close(ended bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.Over, s.Ended = time.Now(), ended
}

// End records a request that ends a session, and was sent at called. If done is true, its response has just said
// that the session has ended. Otherwise it may or may not have ended it.
func (h *Streams) End(session string, called time.Time, done bool) {
	h.ending(&Ending{Session: session, Called: called}, done)
}

// EndAll is End for all sessions of a user.
func (h *Streams) EndAll(user string, called time.Time, done bool) {
	h.ending(&Ending{User: user, Called: called}, done)
}

func (h *Streams) ending(e *Ending, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if done {
		e.Returned = time.Now()
	}
	h.endings = append(h.endings, e)
}

// Login records, as End does, a request by which a session becomes that of a user.
func (h *Streams) Login(session, user string, called time.Time, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &login{session: session, user: user, called: called}
	if done {
		l.returned = time.Now()
	}
	h.logins = append(h.logins, l)
}

// Counts returns how many streams ended with their session, and how many did not.
func (h *Streams) Counts() (ended, other int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.streams {
		if s.Ended {
			ended++
		} else {
			other++
		}
	}
	return ended, other
}

// Check returns an error if a stream was open later than limit allows, or ended although its session had not. limit
// returns the time by which streams must be over if the end of their session was answered at the time returned.
func (h *Streams) Check(limit func(returned time.Time) time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var wrong []error
	for _, s := range h.streams {
		over := s.Over
		if over.IsZero() {
			over = now
		}
		mayEnd := false
		for _, e := range h.endings {
			may, surely := h.ends(e, s.Session)
			mayEnd = mayEnd || may && !e.Called.After(over)
			if !surely {
				continue
			}
			if s.Began.After(e.Returned) {
				wrong = append(wrong, fmt.Errorf("%v began %v after the answer to %v", s, s.Began.Sub(e.Returned), e))
			} else if over.After(limit(e.Returned)) {
				wrong = append(wrong, fmt.Errorf("%v was open %v after the answer to %v", s, over.Sub(e.Returned), e))
			}
		}
		if s.Ended && !mayEnd {
			wrong = append(wrong, fmt.Errorf("%v has ended, and its session has not", s))
		}
	}
	if n := len(wrong); n > most {
		wrong = append(wrong[:most:most], fmt.Errorf("and %d more", n-most))
	}
	return errors.Join(wrong...)
}

// Slowest returns the longest time from the end of a session to the end of a stream. from is when Redis could tell that
// a session has ended, if its end was answered at the time returned.
func (h *Streams) Slowest(from func(returned time.Time) time.Time) (slowest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.streams {
		for _, e := range h.endings {
			if _, surely := h.ends(e, s.Session); surely && s.Ended {
				slowest = max(slowest, s.Over.Sub(from(e.Returned)))
			}
		}
	}
	return slowest
}

// ends reports whether an ending may end a session, and whether it surely does. A login that was under way at the same
// time may be the first of the two, or the second.
func (h *Streams) ends(e *Ending, session string) (may, surely bool) {
	done := !e.Returned.IsZero()
	if e.User == "" {
		return e.Session == session, e.Session == session && done
	}
	of := func(l *login) bool { return l.session == session && l.user == e.User }
	may = slices.ContainsFunc(h.logins, func(l *login) bool { return of(l) && (!done || l.called.Before(e.Returned)) })
	surely = done && slices.ContainsFunc(h.logins, func(l *login) bool {
		return of(l) && !l.returned.IsZero() && l.returned.Before(e.Called)
	})
	return may, surely
}

func (s *Stream) String() string {
	return fmt.Sprintf("a stream of session %s, from %v on,", s.Session, s.Began.Format(clock))
}

func (e *Ending) String() string {
	what := "the end of session " + e.Session
	if e.User != "" {
		what = "the end of all sessions of " + e.User
	}
	return fmt.Sprintf("%s at %v", what, e.Called.Format(clock))
}

const clock = "15:04:05.000"

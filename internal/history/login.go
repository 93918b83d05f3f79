package history

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/anishathalye/porcupine"
)

// Some logins get no response. A second click makes the browser drop the first request, which may still take
// effect. Then the visitor has a dead cookie, and the second click begins another session.

// click makes a login and drops it after a while, finished or not.
func (v *Visitor) click(ctx context.Context, s *session, op Operation, url string, after time.Duration) {
	call := time.Since(v.began)
	v.mu.Lock()
	s.operations = append(s.operations, entry(1000+len(s.operations), op, Answer{}, call, never))
	v.mu.Unlock()
	ctx, drop := context.WithTimeout(ctx, after)
	defer drop()
	c := ownConnections(v.HTTP)
	defer c.CloseIdleConnections()
	_, _ = ask(ctx, c, url, op) // the response is dropped
}

// ownConnections returns c with connections of its own. In Go 1.26, if a request is dropped as its response
// arrives, its connection may go to another request. In about one of 40,000 cases that request fails with the
// error of the dropped one.
func ownConnections(c *http.Client) *http.Client {
	own := *c
	if t, ok := c.Transport.(*http.Transport); ok {
		own.Transport = t.Clone()
	}
	return &own
}

// opened finds out which session the cookie in a response opens, while no other client has it. It is the
// session of the request, which has a number, or a new one, which has only the number of its first write.
func (v *Visitor) opened(id int, op Operation, got Answer) Answer {
	switch op.What {
	case Write:
		got.Anew = got.Status == http.StatusOK
	case Login:
		look := Operation{What: Read, Cookie: got.Cookie}
		seen := v.do(&session{}, id, look, v.Site(0)+v.path(look, 0))
		// A logout with an old cookie may have ended the session meanwhile. Then it looks like a new one.
		if !seen.Known || seen.N == 0 && isMembers(op.Cookie) {
			return Answer{} // as if the login had no response
		}
		got.Anew = seen.N == 0
	}
	return got
}

// anew begins the history of a session that a request with a dead cookie has begun. The visitor continues
// with it after some more requests with the old cookies, or leaves it. The caller holds mu.
func (v *Visitor) anew(s *session, entry porcupine.Operation) {
	op, got := entry.Input.(Operation), entry.Output.(Answer)
	if op.What == Write && got.N != 1 {
		v.wrongs = append(v.wrongs, fmt.Errorf("%9.1f ms: a new session begins with %d", ms(entry.Call), got.N))
	}
	v.afresh++
	next := begunBy(entry)
	if v.now != s || s.next != nil || op.What == Write && len(s.operations)%4 > 0 {
		v.over = append(v.over, next)
		return
	}
	s.next, s.asked = next, max(s.asked, enough-dying)
}

// begunBy returns the session that a write or a login has begun.
func begunBy(entry porcupine.Operation) *session {
	op, got := entry.Input.(Operation), entry.Output.(Answer)
	entry.Input = Operation{What: Begin}
	entry.Output = Answer{Known: true, Status: http.StatusNoContent, Cookie: got.Cookie}
	next := &session{cookies: []string{got.Cookie}, operations: []porcupine.Operation{entry}}
	if op.What == Write {
		// Its history begins with 0, so one is subtracted from all its numbers.
		next.base, next.wrote = 1, true
	}
	return next
}

package history

import (
	"fmt"
	"net/http"
	"time"

	"github.com/anishathalye/porcupine"
)

// Redis may lose whole sessions: it keeps no log, is emptied, or is full and evicts keys. The model of a session
// does not permit what a visitor sees then, so these functions check it instead. For a Redis that returns to an
// earlier state, see setback.go.

// isEmpty reports whether a response shows that the session does not exist: a read finds nothing, or a
// write begins another session.
func isEmpty(op Operation, got Answer) bool {
	switch op.What {
	case Read:
		return got.Known && got.Status == http.StatusOK && got.N == 0
	case Write:
		return got.Known && got.Status == http.StatusOK && got.Cookie != ""
	}
	return false
}

// forgotten records an empty response outside of the history, and continues with the session that a write
// has begun. The caller holds mu.
func (v *Visitor) forgotten(s *session, entry porcupine.Operation) {
	op, got := entry.Input.(Operation), entry.Output.(Answer)
	s.empties = append(s.empties, entry)
	if op.What != Write {
		return
	}
	if got.N != 1 {
		v.wrongs = append(v.wrongs, fmt.Errorf("%9.1f ms: a new session begins with %d", ms(entry.Call), got.N))
	}
	if v.now == s {
		v.over = append(v.over, s)
		v.now = begunBy(entry)
	}
}

// Forgot says that Redis lost all sessions at some time between two moments. Check then asserts that each
// session that had begun before existed until the first moment, and never again after the second.
func (v *Visitor) Forgot(from, to time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgot = &[2]int64{int64(from.Sub(v.began)), int64(to.Sub(v.began))}
}

// comebacks returns the violations of Forgot. Call it after Run.
func (v *Visitor) comebacks() (wrongs []error) {
	if v.forgot == nil {
		return nil
	}
	before, after := v.forgot[0], v.forgot[1]
	for _, s := range v.sessions() {
		if len(s.operations) == 0 || s.operations[0].Return > before {
			continue // it began later
		}
		for _, op := range s.operations {
			if got := op.Output.(Answer); got.Known && op.Call > after {
				wrongs = append(wrongs, fmt.Errorf("%9.1f ms: a session that Redis lost is back: %s",
					ms(op.Call), describe(op.Input.(Operation), got)))
			}
		}
		for _, op := range s.empties {
			if op.Return < before && op.Call > s.written() {
				wrongs = append(wrongs, fmt.Errorf("%9.1f ms: an empty session before Redis lost it: %s",
					ms(op.Call), describe(op.Input.(Operation), op.Output.(Answer))))
			}
		}
	}
	return wrongs
}

// written returns the time of the response to the first write of a session. Until then the session may be
// empty.
func (s *session) written() int64 {
	first := int64(never)
	for _, op := range s.operations {
		if got := op.Output.(Answer); got.Known && (op.Input.(Operation).What == Write || s.base > 0) {
			first = min(first, op.Return)
		}
	}
	return first
}

// Empties returns how many requests did not find a session that had existed.
func (v *Visitor) Empties() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sessions() {
		for _, op := range s.empties {
			if op.Call > s.written() {
				n++
			}
		}
	}
	return n
}

package locker

import "time"

// How long one process may pass a lock among its own callers before others have
// their turn. Long enough that a change of processes, which costs some exchanges
// and a message, does not count; short enough that the others do not notice.
const (
	maxPasses = 32
	maxTurn   = 10 * time.Millisecond
	// Others that stand in no queue may wait all the same: programs that poll,
	// or earlier versions of this one. Now and then they have their chance, too.
	maxTurnAlone = time.Second
)

// A turn is the time in which one process has a lock.
type turn struct {
	began  time.Time
	passes int
	others bool // wait for it, as of the last exchange
	ended  bool // it is over, whoever waits
}

// over reports whether the lock is to be released although callers of this process
// wait.
func (t turn) over(now time.Time) bool {
	lasts := now.Sub(t.began)
	switch {
	case t.ended:
		return true
	case t.others:
		return t.passes >= maxPasses || lasts >= maxTurn
	}
	return lasts >= maxTurnAlone
}

// passed returns the turn after one pass more.
func (t turn) passed(others bool) turn {
	return turn{began: t.began, passes: t.passes + 1, others: others}
}

package lease

import "time"

// A Standing is how things stand with one key: who holds its lock, and who waits for it in this process.
type Standing struct {
	Key     string
	Holder  Owner // as far as it is known
	Known   bool  // there is a Holder
	Waiting []Waiter
}

// A Waiter is one caller that waits.
type Waiter struct {
	Label string
	Came  time.Time
}

// Standings returns all keys that callers of this process hold or wait for, in no order. Those who wait are in the order
// in which they came: the first of them is the head, if that competes with other processes.
func (l *Lines[W]) Standings() []Standing {
	all, holders := l.standings()
	for i, h := range holders { // after the mutex, since it takes a while
		all[i].Holder, all[i].Known = h.Owner()
	}
	return all
}

func (l *Lines[W]) standings() (all []Standing, holders []Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, at := range l.keys {
		s := Standing{Key: key}
		if at.head != nil {
			s.Waiting = append(s.Waiting, Waiter{at.head.Label, at.head.came})
		}
		for _, t := range at.waiting {
			s.Waiting = append(s.Waiting, Waiter{t.Label, t.came})
		}
		all, holders = append(all, s), append(holders, at.holder)
	}
	return all, holders
}

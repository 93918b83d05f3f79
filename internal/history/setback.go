package history

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Setback is a moment at which sessions return to an earlier state, because Redis has failed over to a
// replica that lagged behind, or has lost the end of its log.
//
// Nothing else may be lost. The history up to that moment is linearizable, and so is the history after
// it, which begins with the data that was left. A Setback is for visitors without logins.
type Setback struct {
	// From and Until bound the moment. A request whose response came before Until belongs to the time
	// before the moment. A request that was sent after From and got its response after Until belongs to
	// the time after it.
	From, Until time.Time
	// Left returns the number in the record that a cookie opens, as found in the data that was left,
	// before any client could write there.
	Left func(cookie string) (n int, there bool)
	// Spares reports whether the session that a cookie opens is elsewhere, where nothing is lost. Nil: no
	// session is spared.
	Spares func(cookie string) bool
}

// CheckSetback is Check for a run with a setback. It returns how many confirmed writes the setback lost.
func (v *Visitor) CheckSetback(b Setback) (lost int, _ error) {
	errs := v.wrongs
	for _, s := range v.sessions() {
		n, err := b.check(s.operations, int64(b.From.Sub(v.began)), int64(b.Until.Sub(v.began)))
		if err != nil {
			errs = append(errs, err)
		}
		lost += n
	}
	return lost, errors.Join(errs[:min(len(errs), most)]...)
}

// Oldest returns how long before a setback the oldest lost write had been confirmed, or 0 if none was
// lost.
func (v *Visitor) Oldest(b Setback) (age time.Duration) {
	from, until := b.From.Sub(v.began), int64(b.Until.Sub(v.began))
	for _, s := range v.sessions() {
		if b.Spares != nil && b.Spares(s.cookies[0]) {
			continue
		}
		left, _ := b.Left(s.cookies[0])
		for _, op := range s.operations {
			got := op.Output.(Answer)
			if op.Input.(Operation).What == Write && got.Known && got.N > left && op.Return < until {
				age = max(age, from-time.Duration(op.Return))
			}
		}
	}
	return age
}

// check checks one session.
func (b Setback) check(all []porcupine.Operation, from, until int64) (lost int, _ error) {
	var before, after, open []porcupine.Operation
	cookie, last := "", 0
	for _, op := range all {
		got := op.Output.(Answer)
		switch {
		case !got.Known && op.Call < until: // it may belong to the time before, or after
			open = append(open, op)
		case op.Return >= until:
			after = append(after, op)
		default:
			before = append(before, op)
			last = max(last, got.N)
			if begins(op) {
				cookie = got.Cookie
			}
		}
	}
	if cookie == "" || b.Spares != nil && b.Spares(cookie) { // the session is younger, or elsewhere
		return 0, Check(all)
	}
	left, there := b.Left(cookie)
	for _, op := range before {
		if got := op.Output.(Answer); op.Input.(Operation).What == Write && got.Status == http.StatusOK && got.N > left {
			lost++
		}
	}
	if left > last { // because of writes without a response
		before = append(before, porcupine.Operation{ClientId: redis, Call: from, Return: until,
			Input: Operation{What: Read, Cookie: cookie}, Output: Answer{Known: true, Status: http.StatusOK, N: left}})
	}
	slices.SortStableFunc(open, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	before = append(before, open...)
	if err := Check(before); err != nil {
		return lost, fmt.Errorf("before the setback: %w", err)
	}
	if done := len(settled(before)) - len(before) + len(open); done < len(open) {
		after = append(after, open[done:]...) // they may take effect late
	}
	if !there {
		return lost, orphans(cookie, after)
	}
	if err := Check(counted(cookie, left, after, from)); err != nil {
		return lost, fmt.Errorf("after the setback to number %d, and counted from there: %w", left, err)
	}
	return lost, nil
}

// redis is the client of operations that the checker adds.
const redis = -1

// counted turns a history that begins after some writes into one that begins without writes.
func counted(cookie string, writes int, operations []porcupine.Operation, from int64) []porcupine.Operation {
	history := []porcupine.Operation{{ClientId: redis, Call: from, Return: from,
		Input: Operation{What: Begin}, Output: Answer{Known: true, Status: http.StatusNoContent, Cookie: cookie}}}
	for _, op := range operations {
		if got := op.Output.(Answer); got.Known && got.Status == http.StatusOK {
			got.N -= writes
			op.Output = got
		}
		history = append(history, op)
	}
	return history
}

// orphans checks the history after the loss of a whole session. Its cookie opens nothing, and each write
// with it begins another session.
func orphans(cookie string, operations []porcupine.Operation) error {
	of := func(cookie string) []porcupine.Operation {
		return slices.DeleteFunc(slices.Clone(operations), func(op porcupine.Operation) bool {
			return op.Input.(Operation).Cookie != cookie
		})
	}
	for _, op := range of(cookie) {
		asked, got := op.Input.(Operation), op.Output.(Answer)
		switch {
		case !got.Known:
		case asked.What == Read && got.Status == http.StatusOK && got.N == 0:
		case asked.What == Write && got.Status == http.StatusOK && got.N == 1 && got.Cookie != "":
			if err := Check(counted(got.Cookie, 1, of(got.Cookie), op.Call)); err != nil {
				return fmt.Errorf("in a session that was begun after the loss: %w", err)
			}
		default:
			return fmt.Errorf("after the loss of the session: %s", describe(asked, got))
		}
	}
	return nil
}

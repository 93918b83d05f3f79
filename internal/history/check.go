package history

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience bounds the checker's time. Usually the checker takes milliseconds.
const patience = time.Minute

// Check returns nil if there is an order of the operations in which all responses are right. Otherwise
// the error lists the shortest part of them that it could find without such an order.
func Check(operations []porcupine.Operation) error {
	begin, operations := state{}, overtaken(operations)
	switch judge(operations, begin) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errors.New("the checker has reached no verdict in time")
	}
	short, begin := shrink(operations)
	lines := []string{fmt.Sprintf("no order explains these %d of %d operations", len(short), len(operations))}
	if begin.wild {
		lines[0] += ", whatever was before"
	}
	for _, op := range short {
		until := "     …   "
		if op.Return != never {
			until = fmt.Sprintf("%9.1f", ms(op.Return))
		}
		lines = append(lines, fmt.Sprintf("%9.1f –%s ms  client %-3d %s", ms(op.Call), until, op.ClientId,
			describe(op.Input.(Operation), op.Output.(Answer))))
	}
	return errors.New(strings.Join(lines, "\n"))
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

func judge(operations []porcupine.Operation, begin state) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(begin), settled(operations), patience)
}

// overtaken marks the requests that were refused with a 409 while another one was under way that ends the session or
// moves its ID. A holder that has lost its lock may find its session ended when it commits. So may a logout, if the request
// before has passed the session on to it, and another logout ends the session before what that one has changed is stored.
// After a logout with an old cookie, a request may come a little later: see lent.
func overtaken(operations []porcupine.Operation) []porcupine.Operation {
	marked := slices.Clone(operations)
	for i, op := range operations {
		what := op.Input.(Operation)
		if op.Output.(Answer).Status != http.StatusConflict {
			continue
		}
		for j, other := range operations {
			in := other.Input.(Operation)
			ends := in.What == Logout || in.What == Login && (what.What == Write || what.What == Read || what.What == Login && other.Return != never)
			call := op.Call
			if in.What == Logout && isMembers(in.Cookie) && in.Cookie != what.Cookie {
				call -= lent
			}
			what.overtaken = what.overtaken || ends && j != i && other.Call < op.Return && call < other.Return
		}
		marked[i].Input = what
	}
	return marked
}

// settled gives each write without a response the number that it wrote, or leaves it out if it may count
// as not done.
//
// The numbers up to the highest that are missing from the responses must come from such writes. If there
// is any order in which all responses are right, there is one in which the writes that were sent first
// wrote the lowest of these numbers. So the checker does not have to try all combinations.
func settled(operations []porcupine.Operation) (known []porcupine.Operation) {
	given, last, first := make(map[int]bool), 0, 0
	var open []porcupine.Operation
	for _, op := range operations {
		got, what := op.Output.(Answer), op.Input.(Operation).What
		if !got.Known && what == Write {
			open = append(open, op)
			continue
		}
		known = append(known, op)
		if what == Write && got.N > 0 {
			given[got.N] = true
			if first == 0 || got.N < first {
				first = got.N
			}
		}
		last = max(last, got.N)
	}
	slices.SortStableFunc(open, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	if !slices.ContainsFunc(operations, begins) && first > 0 {
		// The beginning was cut off, and with it the first writes.
		for n := 1; n < first; n++ {
			given[n] = true
		}
	}
	several := slices.ContainsFunc(open, func(op porcupine.Operation) bool {
		return op.Input.(Operation).Cookie != open[0].Input.(Operation).Cookie
	})
	for n := 1; n <= last && len(open) > 0; n++ {
		if !given[n] {
			op := open[0]
			op.Output = Answer{Known: true, Status: 200, N: n}
			if several {
				op.Input = Operation{What: Write, Cookie: someones}
			}
			known, open = append(known, op), open[1:]
		}
	}
	return known
}

func begins(op porcupine.Operation) bool { return op.Input.(Operation).What == Begin }

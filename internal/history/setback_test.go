package history

import (
	"net/http"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// These are histories that a setback at 100 ms explains, and others that it does not. A session that it spares
// has lost nothing, whatever the number that is left.
func TestSetback(t *testing.T) {
	t.Parallel()
	begin := Operation{What: Begin}
	write, read := Operation{What: Write, Cookie: "c"}, Operation{What: Read, Cookie: "c"}
	at := func(ms int, op Operation, got Answer) porcupine.Operation {
		return entry(ms, op, got, time.Duration(ms)*time.Millisecond, time.Duration(ms+1)*time.Millisecond)
	}
	n := func(n int) Answer { return Answer{Known: true, Status: 200, N: n} }
	before := []porcupine.Operation{at(0, begin, Answer{Known: true, Status: 204, Cookie: "c"})}
	for i := range 5 {
		before = append(before, at(10+10*i, write, n(i+1)))
	}
	for name, tt := range map[string]struct {
		spared bool
		left   map[string]int
		after  []porcupine.Operation
		lost   int
		right  bool
	}{
		"two lost":                {false, map[string]int{"c": 3}, []porcupine.Operation{at(200, read, n(3)), at(210, write, n(4))}, 2, true},
		"one lost after it":       {false, map[string]int{"c": 3}, []porcupine.Operation{at(200, write, n(4)), at(210, read, n(3))}, 2, false},
		"one too many lost":       {false, map[string]int{"c": 3}, []porcupine.Operation{at(200, read, n(2))}, 2, false},
		"revived":                 {false, map[string]int{"c": 3}, []porcupine.Operation{at(200, write, n(6))}, 2, false},
		"an empty session":        {false, map[string]int{"c": 3}, []porcupine.Operation{at(200, read, n(0))}, 2, false},
		"a number that never was": {false, map[string]int{"c": 9}, []porcupine.Operation{at(200, read, n(9))}, 0, false},
		"all lost": {false, nil, []porcupine.Operation{at(200, read, n(0)),
			at(210, write, Answer{Known: true, Status: 200, N: 1, Cookie: "d"}), at(220, Operation{What: Write, Cookie: "d"}, n(2))}, 5, true},
		"all lost, and adopted": {false, nil, []porcupine.Operation{at(200, write, n(1))}, 5, false},
		"spared":                {true, nil, []porcupine.Operation{at(200, read, n(5))}, 0, true},
		"spared, and lost":      {true, nil, []porcupine.Operation{at(200, read, n(0))}, 0, false},
	} {
		v := &Visitor{began: time.Now()}
		v.now = &session{cookies: []string{"c"}, operations: append(before[:len(before):len(before)], tt.after...)}
		moment := v.began.Add(100 * time.Millisecond)
		setback := Setback{From: moment, Until: moment.Add(time.Millisecond),
			Left:   func(cookie string) (int, bool) { n, there := tt.left[cookie]; return n, there },
			Spares: func(string) bool { return tt.spared }}
		lost, err := v.CheckSetback(setback)
		if (err == nil) != tt.right || lost != tt.lost || tt.spared && v.Oldest(setback) != 0 {
			t.Errorf("%s: %d lost, want %d; %v", name, lost, tt.lost, err)
		}
	}
}

// Redis lost all sessions between 100 and 110 ms. Each row has the responses before and after that, and
// whether they are right.
func TestForgot(t *testing.T) {
	const a, b = "a", "b"
	num := func(n int) Answer { return Answer{Known: true, Status: http.StatusOK, N: n} }
	lost := Answer{Known: true, Status: http.StatusOK, N: 1, Cookie: b}
	type event struct {
		at   int // ms
		what string
		with string
		got  Answer
	}
	for name, tt := range map[string]struct {
		events  []event
		empties int
		right   bool
	}{
		"empty before the first write":       {[]event{{3, Read, a, num(0)}, {5, Write, a, num(1)}}, 0, true},
		"gone, for reading":                  {[]event{{3, Write, a, num(1)}, {120, Read, a, num(0)}}, 1, true},
		"gone, and another begun":            {[]event{{3, Write, a, num(1)}, {120, Write, a, lost}, {130, Write, b, num(2)}, {140, Read, b, num(2)}}, 1, true},
		"the next session is checked, too":   {[]event{{3, Write, a, num(1)}, {120, Write, a, lost}, {130, Write, b, num(2)}, {140, Read, b, num(1)}}, 1, false},
		"a new session begins with old data": {[]event{{3, Write, a, num(1)}, {120, Write, a, Answer{Known: true, Status: http.StatusOK, N: 2, Cookie: b}}}, 1, false},
		"gone too early":                     {[]event{{3, Write, a, num(1)}, {50, Read, a, num(0)}}, 1, false},
		"back":                               {[]event{{3, Write, a, num(1)}, {120, Read, a, num(0)}, {130, Read, a, num(1)}}, 1, false},
		"still there":                        {[]event{{3, Write, a, num(1)}, {120, Write, a, num(2)}}, 0, false},
		"a lost update before":               {[]event{{3, Write, a, num(1)}, {10, Write, a, num(1)}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Visitor{Losing: true, began: time.Now()}
			v.now = &session{cookies: []string{a}, operations: begun[:len(begun):len(begun)]}
			all := map[string]*session{a: v.now}
			for _, e := range tt.events {
				s := all[e.with]
				op, at := Operation{What: e.what, Cookie: e.with}, time.Duration(e.at)*time.Millisecond
				v.record(s, 0, op, e.got, at, at+time.Millisecond)
				all[b] = v.now
			}
			v.Forgot(v.began.Add(100*time.Millisecond), v.began.Add(110*time.Millisecond))
			if err := v.Check(); (err == nil) != tt.right {
				t.Errorf("Check: %v", err)
			}
			if n := v.Empties(); n != tt.empties {
				t.Errorf("%d requests met no session, want %d", n, tt.empties)
			}
		})
	}
}

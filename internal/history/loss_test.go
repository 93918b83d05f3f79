package history

import (
	"net/http"
	"testing"
	"time"
)

// What is right if Redis lost all sessions between 100 and 110 ms, and what is not.
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
		"empty before the first write":           {[]event{{3, Read, a, num(0)}, {5, Write, a, num(1)}}, 0, true},
		"gone, for reading":                      {[]event{{3, Write, a, num(1)}, {120, Read, a, num(0)}}, 1, true},
		"gone, and another begun":                {[]event{{3, Write, a, num(1)}, {120, Write, a, lost}, {130, Write, b, num(2)}, {140, Read, b, num(2)}}, 1, true},
		"the next one has a history, too":        {[]event{{3, Write, a, num(1)}, {120, Write, a, lost}, {130, Write, b, num(2)}, {140, Read, b, num(1)}}, 1, false},
		"a new session begins with what was old": {[]event{{3, Write, a, num(1)}, {120, Write, a, Answer{Known: true, Status: http.StatusOK, N: 2, Cookie: b}}}, 1, false},
		"gone too early":                         {[]event{{3, Write, a, num(1)}, {50, Read, a, num(0)}}, 1, false},
		"back":                                   {[]event{{3, Write, a, num(1)}, {120, Read, a, num(0)}, {130, Read, a, num(1)}}, 1, false},
		"still there":                            {[]event{{3, Write, a, num(1)}, {120, Write, a, num(2)}}, 0, false},
		"a lost update before":                   {[]event{{3, Write, a, num(1)}, {10, Write, a, num(1)}}, 0, false},
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

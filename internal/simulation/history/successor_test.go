package history

import (
	"testing"
	"time"
)

// A logout with a member's ID that has moved ends the session to which it has moved. So does a login as another
// user.
func TestCheckOfSuccessors(t *testing.T) {
	const ends, there = "a logout ends what its session has become", "a session is there until it ends"
	ofAnn := func(r *Request) {
		if r.User = ""; !r.New {
			r.User = "ann"
		}
	}
	inU := func(s story, from, to int, saw ...int) story {
		return s.look(from, to, saw...).but(member("U")).but(ofAnn)
	}
	out := func() story { return movedMember.look(20, 22).but(member("T")).but(logout) }
	enters := func(user string) story {
		return movedMember.write(20, 22).but(member("T")).but(login(user)).but(begins("X"))
	}
	// Before the logout is done, U becomes V.
	on := movedMember.write(15, 21, 2, 3).but(member("U")).but(ofAnn).but(callsRenew).but(begins("V")).but(func(r *Request) { r.SetUser = "ann" }).
		look(20, 22).but(member("T")).but(logout)
	inV := func(s story, saw ...int) story {
		return s.look(30, 32, saw...).but(member("V")).but(ofAnn)
	}
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"a logout ends it":                      {inU(out(), 30, 32), ""},
		"a logout does not end it":              {inU(out(), 30, 32, 2, 3), ends},
		"a look before the logout is done":      {inU(out(), 21, 23, 2, 3), ""},
		"saved afterwards":                      {inU(out(), 15, 30, 2, 3).but(func(r *Request) { r.Effect, r.Wrote = Write, []int{2, 3, 5} }), ends},
		"nobody has ended it":                   {inU(movedMember, 30, 32), there},
		"a look does not end it":                {inU(movedMember.look(20, 22).but(member("T")), 30, 32), there},
		"perhaps a logout, and it is ended":     {inU(out().but(unknown), 30, 32), ""},
		"perhaps a logout, and it is not ended": {inU(out().but(unknown), 30, 32, 2, 3), ""},
		"a logout with a guest's ID does not":   {moved.look(20, 22).but(logout).look(30, 32).but(member("T")), there},
		"a logout with both IDs ends it, too":   {inU(movedMember.look(20, 22, 1).but(beside("T")).but(logout).but(destroys), 30, 32, 2, 3), ends},
		"a minute later it may stay": {inU(movedMember.look(59_990, 60_022).but(member("T")).but(logout), 60_030, 60_032, 2, 3).
			but(func(r *Request) { r.Outcome = Refused }), ""},

		"the next one is ended": {inV(on), ""},
		"the next one is not":   {inV(on, 2, 3, 4), ends},

		"another user ends it":  {inU(enters("bob"), 30, 32), ""},
		"another user does not": {inU(enters("bob"), 30, 32, 2, 3), ends},
		"a session without a user stays": {begun.write(4, 5).but(member("")).but(callsRenew).but(begins("T")).write(10, 12, 2).but(member("T")).but(callsRenew).but(begins("U")).
			write(20, 22).but(member("T")).but(login("bob")).but(begins("X")).look(30, 32, 2, 3).but(member("U")), ""},
		"the same user leaves it":       {inU(enters("ann"), 30, 32, 2, 3), ""},
		"the same user must not end it": {inU(enters("ann"), 30, 32), there},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.TTL = time.Hour
			judge(t, terms, tt.story, tt.broken)
		})
	}
}

package history

import (
	"slices"
	"testing"
	"time"
)

// ofAnn makes all sessions those of ann.
func (s story) ofAnn() story {
	s = slices.Clone(s)
	for i := range s {
		if s[i].SetID != "" {
			s[i].SetUser = "ann"
		}
		if s[i].Cookie != "" && !s[i].New {
			s[i].User = "ann"
		}
	}
	return s
}

// all ends all sessions of ann between two times, except the spared one.
func all(from, to int, spared string) Ending {
	return Ending{Number: 100, User: "ann", Spared: spared, Began: at(from), End: at(to), Outcome: Answered}
}

// one ends S.
func one(from, to int) Ending {
	return Ending{Number: 100, ID: "S", Began: at(from), End: at(to), Outcome: Answered}
}

func (e Ending) unanswered() Ending { e.Outcome, e.Cause = Unknown, Unavailable; return e }
func (e Ending) missed() Ending     { e.Cause = Gone; return e }
func sealed(ms int) func(r *Request) {
	return func(r *Request) { r.Seal = at(ms) }
}

// These are histories that break promises about endings of users' sessions, and histories that only look wrong.
func TestCheckOfEndings(t *testing.T) {
	const over, there = "what was ended is over", "a session is there until it ends"
	for name, tt := range map[string]struct {
		story
		endings []Ending
		broken  string
	}{
		"end all":                          {begun.look(30, 32), []Ending{all(10, 12, "")}, ""},
		"end all, and it is alive":         {begun.look(30, 32, 1), []Ending{all(10, 12, "")}, over},
		"seen by one who failed":           {begun.write(30, 32, 1).but(refused), []Ending{all(10, 12, "")}, over},
		"alive until then":                 {begun.look(8, 9, 1).look(11, 20, 1), []Ending{all(10, 12, "")}, ""},
		"saved until then":                 {begun.write(5, 20, 1).but(sealed(11)), []Ending{all(10, 12, "")}, ""},
		"saved afterwards":                 {begun.write(5, 20, 1).but(sealed(13)), []Ending{all(10, 12, "")}, over},
		"refused afterwards":               {begun.write(5, 20, 1).but(sealed(13)).but(refused), []Ending{all(10, 12, "")}, ""},
		"nothing left to end":              {begun.write(5, 20, 1).but(sealed(13)).but(destroys), []Ending{all(10, 12, "")}, ""},
		"all but one":                      {begun.look(30, 32, 1), []Ending{all(10, 12, "S")}, ""},
		"all but one, and it is gone":      {begun.look(30, 32), []Ending{all(10, 12, "S")}, there},
		"all but another":                  {begun.look(30, 32, 1), []Ending{all(10, 12, "X")}, over},
		"begun meanwhile, and alive":       {begun.look(30, 32, 1), []Ending{all(2, 12, "")}, ""},
		"begun meanwhile, and ended":       {begun.look(30, 32), []Ending{all(2, 12, "")}, ""},
		"begun afterwards":                 {begun.look(30, 32), []Ending{all(-50, -40, "")}, there},
		"not over yet":                     {begun.look(14, 16, 1).look(30, 32), []Ending{all(10, 12, "")}, over},
		"no answer, and done":              {begun.look(30, 32), []Ending{all(10, 12, "").unanswered()}, ""},
		"no answer, and not done":          {begun.look(30, 32, 1), []Ending{all(10, 12, "").unanswered()}, ""},
		"no answer, and done later":        {begun.look(20, 22, 1).look(30, 32), []Ending{all(10, 12, "").unanswered()}, ""},
		"no answer, and done far too late": {begun.look(20, 22, 1).look(400, 402, 1).look(500, 502), []Ending{all(10, 12, "").unanswered()}, there},
		"of another user":                  {begun.look(30, 32), []Ending{{Number: 100, User: "bob", Began: at(10), End: at(12), Outcome: Answered}}, there},

		"one is ended":                       {begun.look(30, 32), []Ending{one(10, 12)}, ""},
		"one is ended, and is alive":         {begun.look(30, 32, 1), []Ending{one(10, 12)}, over},
		"one is ended twice":                 {begun.look(30, 32), []Ending{one(10, 12), one(20, 22)}, over},
		"the second end finds nothing":       {begun.look(30, 32), []Ending{one(10, 12), one(20, 22).missed()}, ""},
		"an end of nothing":                  {begun.look(30, 32, 1), []Ending{one(10, 12).missed()}, there},
		"the session had moved before":       {begun.write(5, 15, 1).but(sealed(9)).but(renews), []Ending{one(10, 12).missed()}, ""},
		"the session moves meanwhile":        {begun.write(5, 15, 1).but(sealed(9)).but(renews), []Ending{one(10, 12)}, ""},
		"moved meanwhile, and ended as well": {begun.write(5, 15, 1).but(sealed(9)).but(renews).look(30, 32).but(inT), []Ending{one(10, 12)}, ""},
		"moved meanwhile, and goes on":       {begun.write(5, 15, 1).but(sealed(9)).but(renews).look(30, 32, 1, 2).but(inT), []Ending{one(10, 12)}, over},

		"a new ID that was ended":           {begun.write(5, 15, 1).but(sealed(9)).but(renews).look(30, 32).but(inT), []Ending{all(10, 12, "")}, ""},
		"a new ID escapes":                  {begun.write(5, 15, 1).but(sealed(9)).but(renews).look(30, 32, 1, 2).but(inT), []Ending{all(10, 12, "")}, over},
		"a new ID of the one is spared":     {begun.write(5, 15, 1).but(sealed(9)).but(renews).look(30, 32, 1, 2).but(inT), []Ending{all(10, 12, "S")}, ""},
		"a new ID of the one is not spared": {begun.write(5, 15, 1).but(sealed(9)).but(renews).look(30, 32).but(inT), []Ending{all(10, 12, "S")}, ""},
		"a new ID long before":              {begun.write(5, 8, 1).but(sealed(6)).but(renews).look(30, 32, 1, 2).but(inT), []Ending{all(10, 12, "S")}, over},
		"a new ID afterwards":               {begun.write(40, 50, 1).but(renews).look(60, 62).but(inT), []Ending{all(10, 12, "S")}, there},

		"somebody else's": {begun.look(30, 32, 1).but(func(r *Request) { r.User = "bob" }), nil, "a session is its user's"},
		"an end is slow":  {begun, []Ending{all(10, 100, "")}, "every wait is bounded"},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.Lateness, terms.Endings = 5*milli, tt.endings
			s := tt.story
			if tt.broken != "a session is its user's" {
				s = s.ofAnn()
			}
			judge(t, terms, s, tt.broken)
		})
	}
}

// If replies change places, a read may get the record that another read had asked for before the end.
func TestReadsMayChangePlacesAroundAnEnding(t *testing.T) {
	const rule = "what was ended is over"
	long := func(r *Request) { r.Open = at(25) }
	overlap := begun.look(8, 30).but(readOnly).but(long).look(20, 22, 1).but(readOnly).ofAnn()
	swaps := terms()
	swaps.Lateness, swaps.Endings = 5*milli, []Ending{all(10, 12, "")}
	judge(t, swaps, overlap, rule)
	swaps.Swaps = true
	judge(t, swaps, overlap, "")
	judge(t, swaps, begun.look(8, 10, 1).but(readOnly).look(20, 22, 1).but(readOnly).ofAnn(), rule) // no other read was under way

	loggedOut := begun.look(8, 30).but(readOnly).but(long).write(11, 12, 1).but(destroys).look(20, 22, 1).but(readOnly)
	swaps.Endings = nil
	judge(t, swaps, loggedOut, "")
	swaps.Swaps = false
	judge(t, swaps, loggedOut, "what has ended does not come back")
}

// A login begins no session if it arrived before all sessions of its user were ended. If it arrives after that,
// it is not refused. An ending is done once, and in time, however late its messages come.
func TestCheckOfLoginsBesideEndings(t *testing.T) {
	const over, there, out = "what was ended is over", "a session is there until it ends", "nobody is shut out"
	logsIn := func(r *Request) {
		r.Effect, r.LogsIn, r.SetID, r.SetUser, r.Anew = Renew, "ann", "T", "ann", true
	}
	shutOut := func(r *Request) {
		gone(r)
		r.SetID, r.SetUser = "", ""
	}
	login := func(seal int) story { return begun.write(100, 130, 1).but(logsIn).but(sealed(seal)) }
	refusal := login(129).but(shutOut)
	annsT := func(r *Request) { r.Cookie, r.ID, r.User = "T", "T", "ann" }
	alive := func(s story) story { return s.look(200, 202, 1, 2).but(annsT) }
	missing := func(s story) story { return s.look(200, 202).but(annsT) }
	elsewhere := func(e Ending) Ending { e.Process = 1; return e }
	later := func(e Ending) Ending { e.Life = 1; return e }
	ofBob := func(e Ending) Ending { e.User = "bob"; return e }
	strict, hours := func(t *Terms) { t.Strict = true }, func(t *Terms) { t.Lateness = time.Hour }
	forgets := func(t *Terms) { t.Losses = []Loss{{At: at(115)}} }
	for name, tt := range map[string]struct {
		story
		Ending
		but    func(t *Terms)
		broken string
	}{
		"refused, since it came before":           {refusal, all(110, 112, ""), nil, ""},
		"refused, came while they were ended":     {refusal, all(90, 112, ""), nil, ""},
		"refused, since others were ended":        {refusal, all(110, 112, "X"), nil, ""},
		"refused, and nobody was ended":           {refusal, one(-2, -1).missed(), nil, out},
		"refused, since bob's were":               {refusal, ofBob(all(110, 112, "")), nil, out},
		"refused, though they were before":        {refusal, all(90, 98, ""), nil, out},
		"refused by a process that cannot know":   {refusal, elsewhere(all(90, 98, "")), nil, ""},
		"refused by a process that has forgotten": {refusal, later(all(90, 98, "")), nil, ""},
		"refused, but the process must know":      {refusal, elsewhere(all(70, 80, "")), nil, out},
		"refused, must know without lateness":     {refusal, elsewhere(all(90, 98, "")), strict, out},
		"refused, must know within Timeout":       {refusal, elsewhere(all(40, 55, "")), hours, out},
		"refused, and they may be ended yet":      {refusal, all(40, 60, "").unanswered(), hours, ""},
		"refused, and they cannot be ended yet":   {refusal, all(-70, -40, "").unanswered(), hours, out},
		"refused afterwards":                      {refusal, all(140, 142, ""), nil, out},

		"stored before, and ended":         {missing(login(110)), all(110, 112, ""), nil, ""},
		"stored before, and not ended":     {alive(login(110)), all(110, 112, ""), nil, over},
		"stored afterwards":                {login(114), all(110, 112, ""), nil, over},
		"stored afterwards, perhaps":       {login(114).but(shutOut).but(unknown), all(110, 112, ""), nil, ""},
		"stored after Redis has forgotten": {alive(login(120)), all(110, 112, ""), forgets, ""},
		"it arrived meanwhile":             {alive(login(120)), all(90, 112, ""), nil, ""},
		"it arrived meanwhile, is ended":   {missing(login(120)), all(90, 112, ""), nil, there},
		"it may have been stored before":   {missing(login(111)), all(90, 112, ""), nil, ""},

		"a copy of the end":                {missing(login(129)), all(90, 98, ""), hours, there},
		"a copy of a single end":           {missing(login(129)), Ending{ID: "T", Cause: Gone, Outcome: Answered, Began: at(90), End: at(98)}, hours, there},
		"a late copy":                      {missing(login(129)), all(70, 90, "").unanswered(), hours, ""},
		"a copy that is late for too long": {missing(login(129)), all(10, 40, "").unanswered(), hours, there},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.Lateness, terms.Endings = 5*milli, []Ending{tt.Ending}
			if tt.but != nil {
				tt.but(&terms)
			}
			judge(t, terms, tt.story, tt.broken)
		})
	}
}

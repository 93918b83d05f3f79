package history

import "testing"

// What is promised without faults only.
func TestCheckWithoutFaults(t *testing.T) {
	strict := terms()
	strict.Strict, strict.Exclusion, strict.Gap, strict.MaxWaiters = true, true, 20*milli, 3
	opens := func(ms int) func(r *Request) { return func(r *Request) { r.Open = at(ms) } }
	waited := func(cause Cause) func(r *Request) {
		return func(r *Request) { r.Outcome, r.Status, r.Cause, r.Open, r.Seal = Refused, 503, cause, 0, 0 }
	}
	crowd := begun.write(10, 90, 1)
	for i := range 9 {
		crowd = crowd.look(12+i, 100+i, 1, 2).but(opens(91 + i))
	}
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"two after one another": {begun.write(10, 20, 1).write(11, 30, 1, 2).but(opens(20)), ""},
		"two at once":           {begun.write(10, 20, 1).write(11, 30, 1, 2).but(opens(15)), "one holder at a time"},

		"the first is served first": {begun.write(10, 20, 1).write(11, 30, 1, 2).but(opens(20)).write(12, 40, 1, 2, 3).but(opens(30)), ""},
		"the last is served first":  {begun.write(10, 20, 1).write(11, 40, 1, 2, 4).but(opens(30)).write(12, 30, 1, 2).but(opens(20)), "first come, first served"},

		"the wait was over":            {begun.write(5, 200, 1).look(10, 111, 1).but(waited(Timeout)), ""},
		"the wait was not over":        {begun.write(5, 200, 1).look(10, 50, 1).but(waited(Timeout)), "without faults a refusal has a reason"},
		"too many wait":                {begun.write(10, 90, 1).look(12, 93, 1, 2).but(opens(91)).look(13, 94, 1, 2).but(opens(92)).look(14, 95, 1, 2).but(opens(93)).look(15, 16, 1).but(waited(TooMany)), ""},
		"too few wait for that":        {begun.write(10, 90, 1).look(12, 13, 1).but(waited(TooMany)), "without faults a refusal has a reason"},
		"more wait than may":           {crowd, "no more than MaxWaiters wait"},
		"lost for nothing":             {begun.write(10, 12, 1).but(refused), "without faults a refusal has a reason"},
		"unavailable":                  {begun.write(10, 12, 1).but(unknown), "without faults a refusal has a reason"},
		"unavailable to who has left":  {begun.write(10, 12, 1).but(unknown).but(func(r *Request) { r.Leaves = at(11) }), ""},
		"a mistake of the handler":     {begun.write(10, 12, 1).but(refused).but(func(r *Request) { r.Cause, r.Status, r.Faulty = Mistake, 500, true }), ""},
		"a mistake, but not its own":   {begun.write(10, 12, 1).but(refused).but(func(r *Request) { r.Cause, r.Status = Mistake, 500 }), "without faults a refusal has a reason"},
		"it waits for a holder":        {begun.write(10, 90, 1).look(12, 95, 1, 2).but(opens(91)), ""},
		"it waits for nobody":          {begun.write(10, 20, 1).look(12, 95, 1, 2).but(opens(91)), "nobody waits for what nobody has"},
		"it waits in vain, for nobody": {begun.write(10, 20, 1).look(12, 113, 1).but(waited(Timeout)), "nobody waits for what nobody has"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, strict, tt.story, tt.broken) })
	}
}

// Two processes whose requests always wait take turns.
func TestCheckTurns(t *testing.T) {
	for name, tt := range map[string]struct {
		every  int // so many turns, one is that of the second process
		broken string
	}{
		"in turns":                  {2, ""},
		"the second one is starved": {5, "processes take turns"},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.Turns, terms.LockWait, terms.MaxWaiters = true, at(10_000), 1000
			s, saw := begun, []int{1}
			for i := range 100 {
				s = s.write(10, 1000+10*i+9, saw...).but(func(r *Request) {
					r.Open = at(1000 + 10*i)
					r.Seal = r.Open + 8*milli
					if i%tt.every == 0 {
						r.Process = 1
					}
				})
				saw = s[len(s)-1].Wrote
			}
			for process := range 2 { // they wait to the end
				s = s.look(10, 3000, 1).but(panicked).but(func(r *Request) { r.Process, r.Open, r.Seal = process, 0, 0 })
			}
			judge(t, terms, s, tt.broken)
		})
	}
}

package history

import (
	"testing"
	"time"
)

// These are promises that hold only without faults.
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

		"without the lock, after it":                     {begun.write(10, 20, 1).write(21, 30, 1, 2).but(optimistic(25)), ""},
		"without the lock, which is held":                {begun.write(10, 20, 1).write(12, 16, 1).but(optimistic(14)), "one holder at a time"},
		"without the lock, it only looks":                {begun.write(10, 20, 1).look(12, 16, 1).but(optimistic(14)), ""},
		"without the lock, it waits to look":             {begun.write(10, 20, 1).look(12, 24, 1, 2).but(optimistic(23)).but(opens(22)), "every wait is bounded"},
		"without the lock, it costs the holder its lock": {begun.write(10, 20, 1).but(refused).write(12, 24, 1).but(optimistic(14)), "without faults a refusal has a reason"},
		"it has the lock, and loses that":                {begun.write(10, 11_000, 1).but(optimistic(10_990)).but(refused), "without faults a refusal has a reason"},
		"it runs again":                                  {begun.write(10, 20, 1).write(12, 24, 1).but(optimistic(14)).but(conflicts).look(14, 30, 1, 2).but(again).but(opens(24)), ""},
		"it runs again for nothing":                      {begun.look(10, 20, 1).write(12, 24, 1).but(optimistic(14)).but(conflicts).look(14, 30, 1).but(again).but(opens(24)), "without faults a refusal has a reason"},
		"it runs again for an earlier write":             {begun.write(5, 7, 1).write(12, 24, 1, 2).but(optimistic(14)).but(conflicts), "without faults a refusal has a reason"},
		"it runs again on what it had":                   {begun.write(10, 20, 1).write(12, 24, 1).but(optimistic(14)).but(conflicts).write(14, 30, 1, 3).but(again).but(opens(24)), "nothing of a refused request is seen"},
		"a second run while another has it":              {begun.write(10, 40, 1).write(12, 24, 1).but(optimistic(14)).but(conflicts).look(14, 30, 1).but(again).but(opens(24)), "one holder at a time"},
		"a second run is overtaken":                      {begun.write(10, 20, 1).look(15, 24, 1, 2).but(opens(20)).look(14, 30, 1, 2).but(again).but(opens(24)), ""},
		"it waited to be saved":                          {begun.write(5, 200, 1).write(10, 125, 1).but(optimistic(20)).but(refused).but(func(r *Request) { r.Cause = Timeout }), ""},
		"it gave up before its wait was over":            {begun.write(5, 200, 1).write(10, 115, 1).but(optimistic(20)).but(refused).but(func(r *Request) { r.Cause = Timeout }), "without faults a refusal has a reason"},
		"too many wait to be saved": {begun.write(5, 90, 1).write(10, 100, 1, 2).but(optimistic(20)).write(10, 101, 1, 2, 3).but(optimistic(20)).
			write(10, 102, 1, 2, 3, 4).but(optimistic(20)).write(25, 31, 1).but(optimistic(30)).but(refused).but(func(r *Request) { r.Cause = TooMany }), ""},
		"too few, but one runs again": {begun.write(5, 15, 1).look(6, 90, 1, 2).but(opens(15)).write(5, 40, 1).but(optimistic(20)).but(conflicts).
			write(20, 101, 1, 2).but(again).but(opens(91)).write(16, 102, 1, 2).but(optimistic(20)).but(conflicts).
			write(25, 31, 1, 2).but(optimistic(30)).but(refused).but(func(r *Request) { r.Cause = TooMany }), "without faults a refusal has a reason"},
		"it runs again for a later write": {begun.write(12, 24, 1).but(optimistic(14)).but(conflicts).write(30, 32, 1), "without faults a refusal has a reason"},
		"a job holds it":                  {begun.write(10, 20, 1).but(job).write(11, 30, 1, 2).but(opens(15)), "one holder at a time"},
		"it is saved after a wait":        {begun.write(10, 90, 1).write(12, 95, 1, 2).but(optimistic(20)), ""},
		"it waits for those that are saved": {begun.write(10, 30, 1).but(optimistic(12)).write(11, 45, 1, 2).but(optimistic(13)).write(12, 60, 1, 2, 3).but(optimistic(14)).
			look(13, 65, 1, 2, 3, 4).but(opens(60)), ""},
		"it waits to be saved": {begun.write(10, 20, 1).write(12, 95, 1, 2).but(optimistic(22)), "nobody waits for what nobody has"},

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

// A session whose lifetime has ended gets no new ID.
func TestCheckARenewAtTheEndOfTheLifetime(t *testing.T) {
	minute := terms()
	minute.TTL, minute.Lifetime, minute.Strict = time.Hour, time.Minute, true
	refusal := func(r *Request) { unknown(r); r.Effect = Renew }
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"at the end":       {begun.write(59_900, 60_000, 1).but(refusal), ""},
		"before it":        {begun.write(59_900, 59_990, 1).but(refusal), "without faults a refusal has a reason"},
		"with the ID kept": {begun.write(59_900, 60_000, 1).but(unknown), "without faults a refusal has a reason"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, minute, tt.story, tt.broken) })
	}
}

// Two processes whose requests always wait take turns.
func TestCheckTurns(t *testing.T) {
	for name, tt := range map[string]struct {
		every  int // one turn in so many is that of the second process
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

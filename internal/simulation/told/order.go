package told

import (
	"slices"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
)

// order judges that the requests of a process have acquired a session in the order of their writes in it. A
// request that follows another may acquire the session before the commit of the other is stored, but not before
// the other's handler is done.
func (j *judge) order() {
	const rule = "requests acquire a session in the order of their writes"
	for _, line := range j.acquired() {
		line = slices.DeleteFunc(line, func(r *request) bool {
			p := r.last
			return p.New || r.Err != nil || p.Outcome != history.Answered || len(p.Wrote) == 0
		})
		for i := 1; i < len(line); i++ {
			before, r := line[i-1], line[i]
			if r.event.Acquired.Equal(before.event.Acquired) && r.last.Seal == before.last.Seal {
				continue // the first request took no time, so nobody knows which one it was
			}
			if !j.follows(r, before) {
				j.broken(rule, r, "it is told to have acquired the session at %v, after #%d at %v, but has not seen what that wrote",
					j.since(r.event.Acquired), before.first.Number, j.since(before.event.Acquired))
			}
			if j.since(r.event.Acquired) < before.last.Seal {
				j.broken(rule, r, "it is told to have acquired the session at %v, while #%d had it until %v",
					j.since(r.event.Acquired), before.first.Number, before.last.Seal)
			}
		}
	}
}

// follows reports whether what a request saw was built on what another request wrote.
func (j *judge) follows(r, before *request) bool {
	version := latest(r.last.Saw)
	for range len(j.requests) {
		if version == before.last.Number {
			return true
		}
		w := j.writer(version)
		if w == nil {
			return false
		}
		version = latest(w.Saw)
	}
	return false
}

// writer returns the request that wrote a version, which is named by the number of that request.
func (j *judge) writer(version int) *history.Request {
	if r := j.byNumber[version%Second]; r != nil {
		for i := range r.Parts {
			if r.Parts[i].Number == version {
				return &r.Parts[i]
			}
		}
	}
	return nil
}

func latest(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

package plan

import "slices"

// A Manner is how one observer of each process behaves. Another observer, which is told after it, behaves well.
type Manner string

// The manners. An observer that does not behave well does so now and then.
const (
	Well      Manner = ""
	Panicking Manner = "panics"
	Blocking  Manner = "blocks"
	Exiting   Manner = "calls runtime.Goexit"
)

// mannerOf returns the manner for a seed and a profile. It is not drawn, so that each seed draws the same as before.
func mannerOf(seed uint64, profile string) Manner {
	n := uint64(slices.Index(Profiles(), profile))
	return [...]Manner{Panicking, Well, Blocking, Well, Exiting, Well}[(seed+n)%6]
}

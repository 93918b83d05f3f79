package locker

import "time"

// patient are options for tests on servers that are not about time: nothing runs
// out, even on a machine that is busy with something else.
var patient = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 10 * s}

// noWait are the options of a single try.
func noWait() Options {
	o := patient
	o.Wait = NoWait
	return o
}

package redistest

import (
	"syscall"
	"time"
)

// sleepUntil sleeps until t. Where all goroutines sleep, time.Sleep is exact to a millisecond
// only, which is twice what a test may ask for. A signal ends the system's sleep early, and Go
// sends many of them, so what is left is slept too.
func sleepUntil(t time.Time) {
	for left := time.Until(t); left > 0; left = time.Until(t) {
		nap := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&nap, nil)
	}
}

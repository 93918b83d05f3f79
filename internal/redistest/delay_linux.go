package redistest

import (
	"syscall"
	"time"
)

// sleepUntil sleeps until t. If all goroutines sleep, time.Sleep is exact only to a millisecond, which is
// twice the smallest delay of a test. A signal ends the system's sleep early, and Go sends many signals,
// so sleepUntil sleeps again for the rest.
func sleepUntil(t time.Time) {
	for left := time.Until(t); left > 0; left = time.Until(t) {
		nap := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&nap, nil)
	}
}

package redistest

import (
	"syscall"
	"time"
)

// sleep sleeps for d. Where all goroutines sleep, time.Sleep is exact to a millisecond
// only, which is twice what a test may ask for.
func sleep(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil) // an interrupted sleep is short, and does no harm
	}
}

//go:build unix

package main

import (
	"syscall"
	"time"
)

// stopJob does what Ctrl-Z does, which is an ordinary key while a screen is open: it returns when the shell continues this
// process. If there is no shell that could do so, the system does not stop the process.
func stopJob() {
	_ = syscall.Kill(0, syscall.SIGTSTP)
	time.Sleep(100 * time.Millisecond) // another thread may get the signal, a moment later
}

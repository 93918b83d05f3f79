//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopJob does what Ctrl-Z does, which is an ordinary key while a screen is open: it returns when the shell continues this
// process. If there is no shell that could do so, the system does not stop the process, and stopJob returns after a second.
func stopJob() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select { // another thread may get the signal, a moment later
	case <-goesOn:
	case <-time.After(time.Second):
	}
}

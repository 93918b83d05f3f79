package subprocess

import "syscall"

// dieWithParent makes the kernel kill the process if the test binary dies without its cleanups: by a
// panic, a timeout or a kill. For the kernel the parent is the thread that started the process. Go keeps
// its threads, except one whose goroutine ends while locked to it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

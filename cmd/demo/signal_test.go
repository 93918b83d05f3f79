package main

import (
	"syscall"
	"testing"
)

// stop and resume freeze a process as a suspended machine would.
func stop(t *testing.T, p *process)   { p.signal(t, syscall.SIGSTOP) }
func resume(t *testing.T, p *process) { p.signal(t, syscall.SIGCONT) }

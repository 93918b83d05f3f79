package rig

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

//go:embed preload/machine.c
var preloadText []byte

// A Machine is the machine on which a Redis seems to run: its clock can jump, and its disk reports what
// it has really written. (libfaketime, a library that changes the clock, hangs at the start of a Redis
// with jemalloc.)
type Machine struct {
	Env []string // for redistest.RealWith

	shared *control
}

// control is shared with machine.c, which has a struct of that name.
type control struct{ jump, synced, syncs int64 }

// preload builds machine.c, once.
var preload = sync.OnceValues(func() (string, error) {
	dir, err := demotest.TempDir()
	if err != nil {
		return "", err
	}
	source, library := filepath.Join(dir, "machine.c"), filepath.Join(dir, "preload.so")
	if err := os.WriteFile(source, preloadText, 0o666); err != nil {
		return "", err
	}
	// The race detector needs gcc, too, so .ci/setup has installed it.
	out, err := exec.Command("gcc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building machine.c: %w\n%s", err, out)
	}
	return library, nil
})

// NewMachine returns a machine for one Redis.
func NewMachine(tb testing.TB) *Machine {
	tb.Helper()
	library, err := preload()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "control")
	size := int(unsafe.Sizeof(control{}))
	if err := os.WriteFile(path, make([]byte, size), 0o666); err != nil {
		tb.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	shared, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Munmap(shared) })
	return &Machine{
		Env:    []string{"LD_PRELOAD=" + library, "FAULTS_CONTROL=" + path},
		shared: (*control)(unsafe.Pointer(&shared[0])),
	}
}

// SetClock makes the clock differ from the real one by the given time from now on.
func (m *Machine) SetClock(by time.Duration) { atomic.StoreInt64(&m.shared.jump, by.Milliseconds()) }

// Syncs returns how often Redis's log was synced.
func (m *Machine) Syncs() int64 { return atomic.LoadInt64(&m.shared.syncs) }

// Synced returns how many bytes of the log a power cut would leave.
func (m *Machine) Synced() int64 { return atomic.LoadInt64(&m.shared.synced) }

package rig

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A Disk is a small file system of its own, which can be filled up.
type Disk struct {
	Dir string

	ballast string
}

// NewDisk mounts one until the end of the test. That needs a privileged user; for others
// it returns nil.
func NewDisk(tb testing.TB) *Disk {
	tb.Helper()
	d := &Disk{Dir: tb.TempDir()}
	d.ballast = filepath.Join(d.Dir, "ballast")
	err := syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, "size=64m")
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return nil
	case err != nil:
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// A process that still has a file open there is killed by a cleanup of its own.
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// Fill leaves no room.
func (d *Disk) Fill(tb testing.TB) {
	tb.Helper()
	file, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	for chunk := make([]byte, 1<<20); ; {
		_, err := file.Write(chunk)
		if errors.Is(err, syscall.ENOSPC) && len(chunk) > 1 {
			chunk = chunk[:len(chunk)/2]
			continue
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, io.ErrShortWrite) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Free makes room again.
func (d *Disk) Free(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(d.ballast); err != nil {
		tb.Fatal(err)
	}
}

//go:build !linux

package redistest

import "time"

func sleep(d time.Duration) { time.Sleep(d) }

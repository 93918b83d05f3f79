//go:build !linux

package redistest

import "time"

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) } // the delay itself

package main

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

const watchAbout = `Shows what locks shows, every second, until it is interrupted. With a million
keys in Redis one look takes longer than a second; the next follows a second
later. While Redis does not reply it says so once, and tries again.
With --json each look is a line.
`

// clearScreen moves a terminal's cursor to the top, and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

// watch goes on while Redis is unavailable. If the first look fails, watch ends: then the command line is
// wrong, or a right is missing.
func watch(j *job) error {
	said := "" // why the last look has failed
	for first := true; ; first = false {
		seen, err := j.holders()
		if j.ctx.Err() != nil {
			return nil // interrupted, which is how it ends
		}
		switch {
		case err == nil:
			said = ""
			if err := j.printLook(seen); err != nil {
				return err
			}
		case first:
			return err
		case err.Error() != said:
			said = err.Error()
			fmt.Fprintln(j.out.stderr, "latchkey:", printable(said))
		}
		if pause(j.ctx, time.Second) != nil {
			return nil
		}
	}
}

func (j *job) printLook(seen look) error {
	now := time.Now()
	if j.json {
		err := j.printJSON(struct {
			At time.Time `json:"at"`
			look
		}{now.UTC().Truncate(time.Millisecond), seen})
		return cmp.Or(err, j.out.Flush())
	}
	if isTerminal(j.out.stdout) {
		fmt.Fprint(j.out, clearScreen)
	}
	fmt.Fprintf(j.out, "%s  %s held\n", moment(now), plural(int64(len(seen.Locks)), "session"))
	if len(seen.Locks)+len(seen.Away) > 0 {
		printHolders(j.out, seen)
	}
	fmt.Fprintln(j.out)
	return j.out.Flush()
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

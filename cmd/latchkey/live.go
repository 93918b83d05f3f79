package main

import (
	"cmp"
	"fmt"
	"time"
)

// A picture is what a command that looks again and again shows after one look.
type picture struct {
	text string // lines for people; the first ones are the most important
	json any
}

// live shows a new picture every second until it is interrupted: on a terminal in place of the one before, elsewhere
// below it. With a count it ends after so many looks, also failed ones, and leaves the last picture on the terminal. It
// reports whether it has looked so often. Its error is that of the last look, and the looks before may fail: live goes
// on while Redis is unavailable. If the first look fails, live ends: then the command line is wrong, or a right is
// missing.
func (j *job) live(count int, look func() (picture, error)) (complete bool, _ error) {
	first, err := look()
	if j.ctx.Err() != nil {
		return false, nil // interrupted, which is how it ends
	}
	if err != nil {
		return false, err
	}
	if s := j.openScreen(); s != nil {
		complete, err := s.live(count, first, look)
		s.close()
		if complete { // the screen is gone: what it has shown last stays on the terminal
			fmt.Fprint(j.out, s.shown)
		}
		return complete, err
	}
	if err := j.printPicture(first); err != nil {
		return false, err
	}
	said := "" // why the last look has failed
	for n := 1; count == 0 || n < count; n++ {
		if pause(j.ctx, time.Second) != nil {
			return false, nil
		}
		p, err := look()
		switch {
		case j.ctx.Err() != nil:
			return false, nil
		case err == nil:
			said = ""
			if err := j.printPicture(p); err != nil {
				return false, err
			}
		case err.Error() != said:
			said = err.Error()
			fmt.Fprintln(j.out.stderr, "latchkey:", printable(said))
		}
	}
	if said != "" {
		return true, errFound
	}
	return true, nil
}

func (j *job) printPicture(p picture) error {
	if j.json {
		return cmp.Or(j.printJSON(p.json), j.out.Flush())
	}
	fmt.Fprintln(j.out, p.text)
	return j.out.Flush()
}

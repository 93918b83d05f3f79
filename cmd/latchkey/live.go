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
// below it. With a count it ends after so many pictures, and leaves the last one on the terminal. It goes on while
// Redis is unavailable. If the first look fails, live ends: then the command line is wrong, or a right is missing.
func (j *job) live(count int, look func() (picture, error)) error {
	first, err := look()
	if j.ctx.Err() != nil {
		return nil // interrupted, which is how it ends
	}
	if err != nil {
		return err
	}
	if s := j.openScreen(); s != nil {
		complete, err := s.live(count, first, look)
		s.close()
		if complete { // the screen is gone: what it has shown last stays on the terminal
			fmt.Fprint(j.out, s.shown)
		}
		return err
	}
	if err := j.printPicture(first); err != nil {
		return err
	}
	said := "" // why the last look has failed
	for n := 1; count == 0 || n < count; {
		if pause(j.ctx, time.Second) != nil {
			return nil
		}
		p, err := look()
		switch {
		case j.ctx.Err() != nil:
			return nil
		case err == nil:
			n, said = n+1, ""
			if err := j.printPicture(p); err != nil {
				return err
			}
		case err.Error() != said:
			said = err.Error()
			fmt.Fprintln(j.out.stderr, "latchkey:", printable(said))
		}
	}
	return nil
}

func (j *job) printPicture(p picture) error {
	if j.json {
		return cmp.Or(j.printJSON(p.json), j.out.Flush())
	}
	fmt.Fprintln(j.out, p.text)
	return j.out.Flush()
}

package main

import (
	"fmt"
	"strings"
	"time"
)

const watchAbout = `Shows what locks shows, every second, until it is interrupted. With a million
sessions in Redis one look takes about 20 seconds; the next follows a second
later.
While Redis does not reply it says so once, and tries again.
With --json each look is a line. On a terminal q ends it, too, after the first
look, unless TERM is dumb.
`

func watch(j *job) error {
	_, err := j.live(0, func() (picture, error) {
		seen, err := j.holders()
		return j.watchPicture(seen, time.Now()), err
	})
	return err
}

func (j *job) watchPicture(seen look, now time.Time) picture {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", headline(now, seen.Held, seen.waiting, seen.Away))
	printAway(&b, seen.Away) // above the table, of which a small terminal shows only the first rows
	switch {
	case len(seen.Locks) > 0:
		j.printHolders(&b, seen.Locks)
	case len(seen.Away) == 0:
		b.WriteString(j.noneHeld() + "\n")
	}
	return picture{b.String(), struct {
		At time.Time `json:"at"`
		look
	}{now.UTC().Truncate(time.Millisecond), seen}}
}

// headline begins a picture. Of all waiters, Redis knows only other processes, so the line says what it counts.
func headline(now time.Time, held, waiting int, gone []away) string {
	return fmt.Sprintf("%s  %s held, %s waiting%s", moment(now), grouped(int64(held)), otherProcesses(waiting), asFarAsKnown(len(gone) > 0))
}

// asFarAsKnown follows a number that does not contain everything.
func asFarAsKnown(incomplete bool) string {
	if incomplete {
		return ", as far as is known"
	}
	return ""
}

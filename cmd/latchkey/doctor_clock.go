package main

import (
	"strconv"
	"time"
)

// maxDrift is more than the difference between two clocks that NTP sets.
const maxDrift = time.Second

// clock checks that Redis's clock agrees with this machine's. Idle timeouts and leases use Redis's clock,
// absolute timeouts those of the program's machines.
func (d *diagnosis) clock() {
	begun := time.Now()
	reply, err := d.node.do(d.ctx, "TIME").AsStrSlice()
	took := time.Since(begun)
	if err != nil || len(reply) != 2 {
		d.say(note, "clock", "its clock is not checked: TIME is refused (%v)", err)
		return
	}
	s, _ := strconv.ParseInt(reply[0], 10, 64)
	us, _ := strconv.ParseInt(reply[1], 10, 64)
	// Redis replied at some time during the round trip.
	d.drift(time.Unix(s, us*1000).Sub(begun.Add(took/2)), took/2)
}

// drift judges how far Redis's clock is ahead, with an uncertainty.
func (d *diagnosis) drift(ahead, within time.Duration) {
	switch {
	case ahead.Abs()-within <= maxDrift:
		d.say(fine, "clock", "its clock agrees with this machine's")
	case ahead > 0:
		d.say(wrong, "clock", "its clock is %s ahead of this machine's: set both by NTP", roughly(ahead))
	default:
		d.say(wrong, "clock", "its clock is %s behind this machine's: set both by NTP", roughly(-ahead))
	}
}

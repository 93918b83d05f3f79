package plan

import (
	"fmt"
	"slices"
	"time"
)

// A profile concentrates on some faults, or on none.
type profile struct {
	name   string
	weight int // how often a seed chooses it
	// tune changes what was drawn for every run.
	tune func(d drawer, p *Plan, l *load)
	// faults are the faults that may happen; default: none.
	faults []Kind
	// hours is how often late messages may be late by hours.
	hours float64
}

var (
	cuts     = []Kind{Cut, CutLate, HalfOpen, Unsubscribe, Mute}
	outages  = []Kind{Crash, Partition, Pause, RestartKeep}
	refusals = []Kind{Full, Loading, Replica, Busy, NoPerm, NoChannels, FlushScripts}
	losses   = []Kind{RestartLose, DropLocks, DropQueues, DropRecord, DropMarks, DropLists}
	all      = slices.Concat(cuts, outages, refusals, losses, []Kind{Slow, DoubleCommands, DoubleReplies, Swap, Panics})
)

var profiles = []profile{
	{name: "calm", weight: 3},
	{name: "crowd", weight: 2, tune: crowd},
	{name: "turns", weight: 1, tune: turns},
	{name: "short", weight: 3, tune: short},
	{name: "tiny", weight: 2, tune: tiny, faults: []Kind{Cut, CutLate, Slow, Crash, DropLocks}},
	{name: "late", weight: 4, tune: late, faults: []Kind{Slow, CutLate, CutLate, CutLate, DropLocks}},
	{name: "doubled", weight: 2, faults: []Kind{DoubleCommands, DoubleReplies, Cut, Slow}},
	{name: "swapped", weight: 2, tune: swapped, faults: []Kind{Swap, Swap, Swap, Cut, Slow}},
	{name: "large", weight: 2, tune: large, faults: []Kind{Slow, Slow, DoubleCommands, DoubleCommands, CutLate, Full}},
	{name: "cut", weight: 3, faults: cuts},
	{name: "lost replies", weight: 1, tune: patient, faults: []Kind{Cut}},
	{name: "panics", weight: 2, faults: []Kind{Panics, Panics, Panics, Cut, Crash}},
	{name: "crashes", weight: 3, faults: outages},
	{name: "silent", weight: 2, faults: []Kind{Pause, Partition, HalfOpen}},
	{name: "refusing", weight: 3, faults: refusals},
	{name: "forgetful", weight: 2, faults: losses},
	{name: "users", weight: 3, tune: users},
	{name: "users late", weight: 3, tune: users, faults: []Kind{Cut, CutLate, CutLate, Slow, DoubleCommands, Crash}},
	{name: "hours", weight: 3, tune: users, faults: []Kind{CutLate, CutLate, DoubleCommands, DoubleCommands, Cut}, hours: 1},
	{name: "everything", weight: 6, faults: all, hours: 0.2},
}

// Profiles returns the names of all profiles.
func Profiles() (names []string) {
	for _, p := range profiles {
		names = append(names, p.name)
	}
	return names
}

// Draw returns the plan of a seed. If name is empty, the seed also chooses the profile.
func Draw(seed uint64, name string) (Plan, error) {
	d := newDrawer(seed)
	var choices []choice[profile]
	for _, p := range profiles {
		if name == "" || p.name == name {
			choices = append(choices, choice[profile]{p.weight, p})
		}
	}
	if choices == nil {
		return Plan{}, fmt.Errorf("there is no profile %q: the profiles are %q", name, Profiles())
	}
	chosen := pick(d, choices)
	p := Plan{Seed: seed, Profile: chosen.name, Options: options(d), Observer: mannerOf(seed, chosen.name)}
	p.Processes = d.number(1, 4)
	l := drawLoad(d)
	if chosen.tune != nil {
		chosen.tune(d, &p, &l)
	}
	p.Visitors = l.visitors
	l.requests(d, &p)
	if chosen.faults != nil {
		late := 3*p.Options.Lease + 2*p.Options.Latency
		if chosen.hours > 0 && d.chance(chosen.hours) {
			late = hours(d, &p)
		}
		p.Faults = faults(d, &p, chosen.faults, late)
	}
	return p, nil
}

// options returns random options.
func options(d drawer) Options {
	o := Options{
		Lease:      d.millis(20*time.Millisecond, 10*time.Second),
		Timeout:    d.within(50*time.Millisecond, 2*time.Second),
		LockWait:   d.within(20*time.Millisecond, 10*time.Second),
		MaxHold:    d.within(50*time.Millisecond, 10*time.Second),
		TTL:        d.millis(2*time.Minute, time.Hour),
		Lifetime:   24 * time.Hour,
		MaxWaiters: d.number(1, 200),
		MaxBytes:   1 << 14,
		Latency:    d.within(20*time.Microsecond, 2*time.Millisecond),
	}
	if d.chance(0.5) {
		o.MaxWaiters = 128
	}
	return o
}

// hours returns how late a message may be, and makes sessions outlast that.
func hours(d drawer, p *Plan) time.Duration {
	p.Options.TTL = d.millis(12*time.Hour, 24*time.Hour)
	p.Options.Lifetime = 48 * time.Hour
	return 3 * time.Hour
}

func crowd(d drawer, p *Plan, l *load) {
	l.visitors, l.burst = d.number(1, 2), 0.9
	l.gap = d.within(50*time.Microsecond, 2*time.Millisecond)
	l.work = d.within(50*time.Microsecond, 5*time.Millisecond)
	p.Options.LockWait = d.within(time.Second, 10*time.Second)
}

// short makes sessions expire after fractions of a second, and handlers take longer than that.
func short(d drawer, p *Plan, l *load) {
	p.Options.TTL = d.millis(50*time.Millisecond, 2*time.Second)
	p.Options.Latency = d.within(20*time.Microsecond, 500*time.Microsecond)
	p.Options.Lifetime = d.millis(5*p.Options.TTL, 200*p.Options.TTL)
	l.gap = d.within(p.Options.TTL/20, p.Options.TTL)
	l.work = d.within(p.Options.TTL/20, 2*p.Options.TTL)
	l.visitors = d.number(1, 4)
}

// tiny makes leases hardly longer than a round trip.
func tiny(d drawer, p *Plan, l *load) {
	p.Options.Lease = d.millis(time.Millisecond, 10*time.Millisecond)
	p.Options.Latency = d.within(p.Options.Lease/200, p.Options.Lease/25)
	l.work = d.within(100*time.Microsecond, 20*time.Millisecond)
}

// late makes leases shorter than messages may be late.
func late(d drawer, p *Plan, l *load) {
	p.Options.Lease = d.millis(20*time.Millisecond, 500*time.Millisecond)
	p.Options.MaxHold = d.within(p.Options.Lease, 4*p.Options.Lease)
	p.Options.Timeout = d.within(20*time.Millisecond, 500*time.Millisecond)
	l.visitors = d.number(1, 3)
}

// large makes one session with large records, so that a SET that comes late or twice meets the next one.
func large(d drawer, p *Plan, l *load) {
	p.Options.Lease = d.millis(time.Second, 10*time.Second)
	p.Options.Timeout = d.within(200*time.Millisecond, 2*time.Second)
	l.visitors, l.large = 1, 0.9
	l.gap = d.within(time.Millisecond, 20*time.Millisecond)
	l.work = l.gap / 4
}

// swapped makes many requests come at once, so that many replies are under way.
func swapped(d drawer, p *Plan, l *load) {
	p.Processes = d.number(1, 2)
	l.visitors, l.burst = d.number(2, 6), 0.9
	l.gap = d.within(p.Options.Latency/10, 2*p.Options.Latency)
	l.work = d.within(l.gap/20, 4*l.gap)
	if d.chance(0.5) {
		l.actions = slices.Concat(usual, ofUsers, ofUsers)
	}
}

// patient makes locks last long if they are not released, and clients wait even longer.
func patient(d drawer, p *Plan, l *load) {
	p.Options.Lease = d.millis(6*time.Second, 10*time.Second)
	p.Options.MaxHold = 10 * time.Second
	p.Options.LockWait = d.within(8*time.Second, 10*time.Second)
	p.Options.Timeout = d.within(50*time.Millisecond, 200*time.Millisecond)
	l.visitors, l.work = 1, d.within(100*time.Microsecond, 5*time.Millisecond)
}

// users makes users with several sessions each, which are ended from one another. In half of the plans
// users log in and out all the time.
func users(d drawer, p *Plan, l *load) {
	// This is not drawn, so that each seed draws the same as before.
	switch p.Seed % 8 {
	case 4, 5:
		p.Options.MaxSessions = 1
	case 6, 7:
		p.Options.MaxSessions = 2
	}
	p.Options.RefuseLogin = p.Options.MaxSessions > 0 && p.Seed%2 == 1
	l.users, l.visitors = 1, d.number(2, 6)
	l.actions = slices.Concat(usual, ofUsers, ofUsers, ofUsers)
	if d.chance(0.5) {
		l.actions = []choice[Action]{{10, Append}, {20, Login}, {6, EndAll}, {4, EndAllBut}, {4, EndOthers}, {6, End}, {4, Destroy}, {4, Renew}}
	}
	l.gap = d.within(100*time.Microsecond, 10*time.Millisecond)
	l.work = d.within(l.gap/20, 4*l.gap)
}

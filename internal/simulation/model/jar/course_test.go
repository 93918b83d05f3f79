package jar_test

import (
	"reflect"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/model/jar"
)

const courses = 20_000

// A seed is enough to repeat its course.
func TestASeedRepeatsACourse(t *testing.T) {
	for seed := range uint64(100) {
		if a, b := jar.Random(seed), jar.Random(seed); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d leads to %+v, then to %+v", seed, a, b)
		}
	}
}

// A browser that follows the responses of a course only opens sessions whose cookies it has. What a response does
// to the cookies depends on the call, as P4 says.
func TestCoursesKeepToTheCookies(t *testing.T) {
	t.Parallel()
	seen := make(map[int]int)
	for seed := range uint64(courses) {
		c := jar.Random(seed)
		follow(t, seed, c, seen)
	}
	for _, status := range []int{200, 403, 409} {
		if seen[status] < courses/200 {
			t.Errorf("only %d responses of %d courses have the status %d", seen[status], courses, status)
		}
	}
}

type cookies struct{ guest, member string }

// atFirst returns the cookies that the browser has at the start.
func atFirst(s jar.Start) cookies {
	return map[jar.Start]cookies{
		jar.Guest: {guest: "A"}, jar.Planted: {guest: "A"}, jar.Elsewhere: {guest: "A"}, jar.Member: {member: "A"}, jar.Dead: {member: "A"},
		jar.DeadAndGuest: {"B", "A"}, jar.MovedAndGuest: {"C", "A"},
	}[s]
}

// follow carries out the steps of a course as a browser does, and counts the statuses.
func follow(t *testing.T, seed uint64, c jar.Course, seen map[int]int) {
	t.Helper()
	browser, attacker := atFirst(c.Start), atFirst(c.Start)
	sent, done := make([]cookies, len(c.Requests)), make([]jar.Step, len(c.Requests))
	over := 0
	for _, p := range c.Steps {
		mine := &browser
		if p.Kind < jar.EndAll && c.Requests[p.Request].Attacker {
			mine = &attacker
		}
		switch p.Kind {
		case jar.Send:
			sent[p.Request] = *mine
		case jar.Look:
			if p.Session != "" && p.Session != browser.guest && p.Session != browser.member {
				t.Fatalf("seed %d: %+v with %+v", seed, p, browser)
			}
		case jar.Open:
			if came := sent[p.Request]; p.Session != "" && p.Session != came.guest && p.Session != came.member {
				t.Fatalf("seed %d: %+v with %+v", seed, p, came)
			}
		case jar.Commit:
			done[p.Request] = p
			seen[p.Status]++
			checkCookies(t, seed, c.Requests[p.Request], p)
		case jar.Answer:
			put(&mine.guest, done[p.Request].Guest)
			put(&mine.member, done[p.Request].Member)
			over++
		case jar.Lose:
			over++
		}
	}
	if over != len(c.Requests) {
		t.Errorf("seed %d: %d of %d requests are over: %+v", seed, over, len(c.Requests), c)
	}
}

func put(cookie *string, set string) {
	switch set {
	case "":
	case "-":
		*cookie = ""
	default:
		*cookie = set
	}
}

// checkCookies checks the cookies of a response.
func checkCookies(t *testing.T, seed uint64, r jar.Request, p jar.Step) {
	t.Helper()
	sets := func(cookie string) bool { return cookie != "" && cookie != "-" }
	switch {
	case p.Status != 200 && (p.Guest != "" || p.Member != ""):
		t.Errorf("seed %d: a refused %s changes a cookie: %+v", seed, r.Call, p)
	case r.Call == "write" && p.Member != "":
		t.Errorf("seed %d: a write changes a member's cookie: %+v", seed, p)
	case r.Call == "login" && p.Status == 200 && (!sets(p.Member) || p.Guest != "-"):
		t.Errorf("seed %d: a login sets the member's cookie, and deletes the guest's: %+v", seed, p)
	case r.Call == "logout" && (p.Status != 200 || sets(p.Guest) || sets(p.Member)):
		t.Errorf("seed %d: a logout sets no cookie, and is never refused: %+v", seed, p)
	case p.Member == "-" && r.Call != "logout":
		t.Errorf("seed %d: only a logout deletes a member's cookie: %+v", seed, p)
	}
}

package history

import (
	"testing"
	"time"
)

// begins makes a request begin a session with this ID.
func begins(id string) func(r *Request) {
	return func(r *Request) { r.SetID, r.Wrote = id, append(append([]int(nil), r.Saw...), r.Number) }
}

func member(id string) func(r *Request) {
	return func(r *Request) { r.Member, r.Guest, r.Cookie, r.ID = id, "", id, id }
}

// beside adds a member's cookie, which opens no session.
func beside(id string) func(r *Request) { return func(r *Request) { r.Member = id } }

// all makes several changes to the last request of the story.
func (s story) all(changes []func(r *Request)) story {
	for _, change := range changes {
		s.but(change)
	}
	return s
}

func navigates(r *Request) { r.Navigates = true }
func callsRenew(r *Request) {
	r.Renews, r.MembersCookie, r.GuestsCookie = true, Set, Deleted
	if !r.New {
		r.Effect = Renew
	}
}

func login(user string) func(r *Request) {
	return func(r *Request) { callsRenew(r); r.LogsIn, r.SetUser = user, user }
}

func logout(r *Request) {
	r.Destroys, r.Effect, r.Wrote, r.MembersCookie, r.GuestsCookie = true, Nothing, nil, Deleted, Deleted
}

func shutOut(r *Request) {
	gone(r)
	r.SetID, r.SetUser, r.MembersCookie, r.GuestsCookie = "", "", Left, Left
}

// The guest's session S becomes the member's session T at 12 ms.
var moved = begun.write(10, 12, 1).but(callsRenew).but(begins("T"))

// ann logs in, T becomes U at 12 ms, and a guest's session S is there besides.
var movedMember = begun.write(4, 5).but(member("")).but(login("ann")).but(begins("T")).
	write(10, 12, 2).but(member("T")).but(func(r *Request) { r.User, r.SetUser = "ann", "ann" }).but(callsRenew).but(begins("U"))

// A request is refused if it crosses a login or a Renew. No other request is.
func TestCheckOfCrossings(t *testing.T) {
	const crosses, out = "who crosses a login is refused", "nobody is shut out"
	write := func(changes ...func(r *Request)) story { return moved.write(20, 22).all(changes) }
	late := func(change func(r *Request)) story { return moved.write(60_020, 60_022).but(change) }
	old := func(changes ...func(r *Request)) story {
		return movedMember.write(20, 22).but(member("T")).all(changes)
	}
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"a write is refused":             {write(shutOut), ""},
		"a write is not refused":         {write(begins("X")), crosses},
		"a look":                         {moved.look(20, 22), ""},
		"a page":                         {write(navigates, begins("X")), ""},
		"a page is refused":              {write(navigates, shutOut), out},
		"a login":                        {write(login("bob"), begins("X")), ""},
		"a login is refused":             {write(login("bob"), shutOut), out},
		"a Renew":                        {write(callsRenew, begins("X")), ""},
		"a Renew is refused":             {write(callsRenew, shutOut), out},
		"a minute later":                 {late(begins("X")), ""},
		"a minute later it is refused":   {late(shutOut), out},
		"perhaps moved, and refused":     {begun.write(10, 12, 1).but(renews).but(unknown).but(func(r *Request) { r.SetID = "" }).write(20, 22).but(shutOut), ""},
		"perhaps moved, and not refused": {begun.write(10, 12, 1).but(renews).but(unknown).but(func(r *Request) { r.SetID = "" }).write(20, 22).but(begins("X")), ""},
		"it was sent before":             {begun.write(10, 12, 1).but(callsRenew).but(begins("T")).write(11, 22).but(begins("X")), crosses},

		"a member's Renew":                          {old(callsRenew, begins("X")), crosses},
		"a member's Renew as a page":                {old(navigates, callsRenew, shutOut), ""},
		"a guest's session beside it":               {movedMember.write(20, 22, 1).but(beside("T")), crosses},
		"a guest's session beside it, refused":      {movedMember.write(20, 22, 1).but(beside("T")).but(shutOut), ""},
		"a guest's session beside it, a look":       {movedMember.look(20, 22, 1).but(beside("T")), ""},
		"a member's session beside it":              {moved.write(20, 22, 1, 2).but(beside("T")).but(func(r *Request) { r.Cookie, r.ID = "T", "T" }), ""},
		"a member's session beside it, refused":     {moved.write(20, 22, 1, 2).but(beside("T")).but(func(r *Request) { r.Cookie, r.ID = "T", "T" }).but(shutOut), out},
		"a member's session is missed":              {moved.look(20, 22).but(beside("T")), "a session is there until it ends"},
		"a member's session is missed, and is back": {movedMember.look(20, 22, 1).but(beside("T")).look(30, 32, 2).but(member("T")), "what has ended does not come back"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, terms(), tt.story, tt.broken) })
	}
}

// These are the effects of responses on the cookies.
func TestCheckOfCookies(t *testing.T) {
	sets := func(r *Request) { r.MembersCookie = Set }
	deletes := func(r *Request) { r.MembersCookie = Deleted }
	keeps := func(r *Request) { r.GuestsCookie = Left }
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"a write sets the member's":      {begun.write(10, 12, 1).but(sets), "nothing else touches a member's cookie"},
		"a look deletes it":              {begun.look(10, 12, 1).but(deletes), "nothing else touches a member's cookie"},
		"a login sets it":                {moved, ""},
		"a login leaves the guest's":     {begun.write(10, 12, 1).but(callsRenew).but(begins("T")).but(keeps), "a login makes the guest a member"},
		"a logout deletes both":          {begun.look(10, 12, 1).but(beside("T")).but(logout).but(destroys), ""},
		"a logout leaves the guest's":    {begun.look(10, 12, 1).but(beside("T")).but(logout).but(destroys).but(keeps), "a logout deletes the cookies that came"},
		"a logout leaves the member's":   {movedMember.look(20, 22, 1).but(member("T")).but(logout).but(func(r *Request) { r.MembersCookie = Left }), "a logout deletes the cookies that came"},
		"there was nothing to delete":    {begun.look(10, 12).but(member("")).but(logout).but(keeps), ""},
		"a logout that fails leaves all": {begun.look(10, 12, 1).but(destroys).but(logout).but(unknown).but(keeps).but(func(r *Request) { r.MembersCookie = Left }), ""},
	} {
		t.Run(name, func(t *testing.T) { judge(t, terms(), tt.story, tt.broken) })
	}
}

// With faults, a read may make a tombstone live for a TTL. In the last minute of that life, the tombstone refuses
// its visitor again.
func TestCheckOfTombstonesThatLiveOn(t *testing.T) {
	const out = "nobody is shut out"
	after := func(s story, seconds int) story { return s.write(1000*seconds, 1000*seconds+2).but(shutOut) }
	for name, tt := range map[string]struct {
		story
		strict bool
		broken string
	}{
		"before its last minute": {after(moved.look(20, 22), 100), false, out},
		"in its last minute":     {after(moved.look(20, 22), 250), false, ""},
		"after that":             {after(moved.look(20, 22), 310), false, out},
		"without faults":         {after(moved.look(20, 22), 250), true, out},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.TTL, terms.Strict = 5*time.Minute, tt.strict
			judge(t, terms, tt.story, tt.broken)
		})
	}
}

// A request that comes after the end of a session's lifetime begins another session, even if the holder gives the
// session a new ID later.
func TestCheckOfCrossingsBeyondALifetime(t *testing.T) {
	crosses := begun.write(10, 30, 1).but(callsRenew).but(begins("T")).write(25, 27).but(begins("X"))
	for lifetime, broken := range map[time.Duration]string{time.Hour: "who crosses a login is refused", 20 * time.Millisecond: ""} {
		terms := terms()
		terms.Lifetime = lifetime
		judge(t, terms, crosses, broken)
	}
}

package history

import (
	"testing"
	"time"
)

// ann logs in with MaxSessions, in browsers that have no cookie. T and U are two of her sessions.
func TestCheckOfMaxSessions(t *testing.T) {
	const refused, most, there = "a login is refused only if there are MaxSessions others", "a user has no more than MaxSessions sessions", "a session is there until it ends"
	enters := func(s story, from int, id string) story {
		return s.write(from, from+2).but(func(r *Request) { r.Guest, r.Cookie = "", "" }).but(login("ann")).but(begins(id))
	}
	full := func(s story, from int) story {
		return enters(s, from, "").but(func(r *Request) {
			r.Outcome, r.Status, r.Cause, r.SetUser, r.MembersCookie, r.GuestsCookie = Refused, 403, Crowded, "", Left, Left
		})
	}
	one := enters(begun, 10, "T")
	used := one.comes(15, "T", 0, 2)
	two := enters(used, 20, "U")
	for name, tt := range map[string]struct {
		story
		most   int
		refuse bool
		broken string
	}{
		"refused":                           {full(used, 20), 1, true, ""},
		"refused, and there is room":        {full(used, 20), 2, true, refused},
		"refused because of an unclaimed":   {full(one, 20), 1, true, refused},
		"refused because of an ended one":   {full(used.comes(17, "T", 0, 2).but(destroys), 30), 1, true, refused},
		"a login ends the older one":        {two.comes(30, "U", 0, 4).comes(34, "T", 0), 1, false, ""},
		"a login ends none":                 {two.comes(30, "U", 0, 4).comes(34, "T", 0, 2), 1, false, most},
		"there is room":                     {two.comes(30, "U", 0, 4).comes(34, "T", 0, 2), 2, false, ""},
		"there is room, and it ends one":    {two.comes(30, "U", 0, 4).comes(34, "T", 0), 2, false, there},
		"with RefuseLogin it ends none":     {two.comes(30, "U", 0, 4).comes(34, "T", 0), 2, true, there},
		"an unclaimed one gives way":        {enters(one, 20, "U").comes(30, "U", 0, 3).comes(34, "T", 0), 1, true, ""},
		"an unclaimed one does not":         {enters(one, 20, "U").comes(30, "U", 0, 3).comes(34, "T", 0, 2), 1, true, "a claim ends what the login has replaced"},
		"an older one does not end it":      {enters(one, 20, "U").comes(30, "T", 0, 2).comes(34, "U", 0), 1, true, there},
		"a login ends the newer one, not T": {enters(two.comes(26, "U", 0, 4), 30, "V").comes(36, "V", 0, 6).comes(40, "T", 0, 2).comes(44, "U", 0), 2, false, there},
		"a login ends the older one, not U": {enters(two.comes(26, "U", 0, 4), 30, "V").comes(36, "V", 0, 6).comes(40, "U", 0, 4).comes(44, "T", 0), 2, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.TTL, terms.MaxSessions, terms.RefuseLogin = time.Hour, tt.most, tt.refuse
			judge(t, terms, tt.story, tt.broken)
		})
	}
}

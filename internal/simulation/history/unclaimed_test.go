package history

import (
	"testing"
	"time"
)

// puts makes a request find one cart, and leave another.
func puts(found, left int) func(r *Request) {
	return func(r *Request) { r.Cart, r.Puts = found, left }
}

// clicks is a guest's session S with the cart 1. It becomes ann's session T at 12 ms.
func clicks() story {
	s := begun.write(10, 12, 1).but(login("ann")).but(begins("T")).but(puts(1, 1))
	s[0].Puts = 1
	return s
}

// click is one more login with the cookie of S, which begins a session.
func (s story) click(from int, user, id string) story {
	return s.write(from, from+2).but(login(user)).but(begins(id))
}

// comes adds a request with the cookie of a session of ann.
func (s story) comes(from int, id string, cart int, saw ...int) story {
	return s.look(from, from+2, saw...).but(member(id)).but(puts(cart, cart)).but(func(r *Request) {
		if !r.New {
			r.User = "ann"
		}
	})
}

// These are histories in which a session gives way to a newer login, and others in which it does not.
func TestCheckOfUnclaimedSessions(t *testing.T) {
	const ends, there, cart = "a claim ends what the login has replaced", "a session is there until it ends", "the cart stays"
	twice := clicks().click(20, "ann", "U")
	thrice := twice.click(24, "ann", "V")
	gone := func(s story, from int) story { return s.comes(from, "T", 0) }
	// The login of T got no response.
	noAnswer := func(cart int) story {
		s := begun.write(10, 12, 1).but(login("ann")).but(puts(1, 1)).but(unknown).click(20, "ann", "U").click(24, "ann", "V")
		return s.comes(30, "V", cart, 4)
	}
	both := twice.comes(30, "T", 1, 1, 2).comes(34, "U", 1, 3)
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"the newer one is claimed":                  {gone(twice.comes(30, "U", 1, 3), 40), ""},
		"the newer one is claimed, the older lives": {twice.comes(30, "U", 1, 3).comes(40, "T", 1, 1, 2), ends},
		"nobody has come back":                      {gone(twice, 40), there},
		"nobody has come back yet":                  {gone(twice, 30).comes(40, "U", 1, 3), there},
		"perhaps somebody has come back":            {gone(twice.comes(30, "U", 1, 3).but(unknown), 40), ""},
		"perhaps, and the older one lives":          {twice.comes(30, "U", 0).but(refused).but(func(r *Request) { r.Open = 0 }).comes(40, "T", 1, 1, 2), ""},
		"the older one is claimed first":            {both.comes(40, "T", 1, 1, 2), ""},
		"the older one is claimed first, and ends":  {gone(both, 40), there},
		"both are claimed at the same time":         {twice.comes(30, "U", 1, 3).comes(29, "T", 1, 1, 2).comes(40, "T", 1, 1, 2), ""},
		"a job claims nothing":                      {gone(twice.comes(24, "T", 1, 1, 2).but(job).comes(30, "U", 1, 3), 40), ""},
		"a job does not find what has given way":    {twice.comes(30, "U", 1, 3).comes(40, "T", 1, 1, 2).but(job), ends},

		"a third login":                        {gone(thrice.comes(30, "V", 1, 4), 40).comes(44, "U", 0), ""},
		"a third login replaces the second":    {thrice.comes(30, "V", 1, 4).comes(40, "T", 1, 1, 2), ends},
		"a third login ends nothing by itself": {gone(thrice, 40), there},
		"the second one is claimed":            {gone(thrice.comes(30, "U", 1, 3), 40).comes(44, "V", 1, 4), ""},
		"the third one does not end that":      {thrice.comes(30, "U", 1, 3).comes(34, "V", 1, 4).comes(40, "U", 0), there},

		"no answer, and the cart goes along":   {noAnswer(1), ""},
		"no answer, and the cart does not":     {noAnswer(0), ""},
		"no answer, and a cart from nowhere":   {noAnswer(7), cart},
		"what has replaced it gives way":       {noAnswer(1).comes(40, "U", 0), ""},
		"what has replaced it, before a claim": {noAnswer(1)[:4].comes(40, "U", 0), there},

		"another user ends nothing":       {gone(clicks().click(20, "bob", "U").comes(30, "U", 0, 3).but(func(r *Request) { r.User = "bob" }), 40), there},
		"another user sees nothing":       {clicks().click(20, "bob", "U").comes(30, "U", 0, 3).but(func(r *Request) { r.User = "bob" }), ""},
		"another user sees ann's cart":    {clicks().click(20, "bob", "U").comes(30, "U", 1, 3).but(func(r *Request) { r.User = "bob" }), cart},
		"a login with another cookie":     {gone(clicks().write(20, 22).but(func(r *Request) { r.Guest, r.Cookie = "", "" }).but(login("ann")).but(begins("U")).comes(30, "U", 0, 3), 40), there},
		"a login long after":              {gone(clicks().click(61_000, "ann", "U").comes(61_030, "U", 0, 3), 61_040), there},
		"a login after it was claimed":    {gone(clicks().comes(15, "T", 1, 1, 2).click(20, "ann", "U").comes(30, "U", 0, 4), 40), there},
		"the cart of what was claimed":    {clicks().comes(15, "T", 1, 1, 2).click(20, "ann", "U").comes(30, "U", 1, 4), cart},
		"the cart is lost":                {twice.comes(30, "U", 0, 3), cart},
		"the cart is another":             {twice.comes(30, "U", 7, 3), cart},
		"the third one has lost the cart": {thrice.comes(30, "V", 0, 4), cart},
		"a job has put another there":     {twice.write(15, 17, 1, 2).but(member("T")).but(job).but(puts(1, 4)).but(func(r *Request) { r.User = "ann" }).comes(30, "U", 4, 3), ""},
		"a login that loses its own":      {clicks().comes(30, "T", 0, 1, 2), cart},
		"a write that loses the cart":     {begun.write(10, 12, 1).but(puts(0, 2)).look(20, 22, 1, 2), cart},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			terms.TTL = time.Hour
			judge(t, terms, tt.story, tt.broken)
		})
	}
}

// A session whose entry was dropped counts as claimed, and lives.
func TestWhatCountsAsClaimed(t *testing.T) {
	const ends = "a claim ends what the login has replaced"
	lives := clicks().click(20, "ann", "U").comes(30, "U", 1, 3).comes(40, "T", 1, 1, 2)
	spared := Ending{Number: 100, User: "ann", Spared: "T", Began: at(13), End: at(14), Outcome: Answered}
	many := clicks()
	for i := range mostUnclaimed {
		many = many.click(20, "ann", "U"+string(rune('a'+i)))
	}
	many = many.comes(30, "Uc", 1, 5).comes(40, "T", 1, 1, 2)
	for name, tt := range map[string]struct {
		change func(t *Terms)
		story
		broken string
	}{
		"nothing happened": {func(*Terms) {}, lives, ends},
		"it was spared":    {func(t *Terms) { t.Endings = []Ending{spared} }, lives, ""},
		"the mark is lost": {func(t *Terms) { t.Losses = []Loss{{At: at(25)}} }, lives, ""},
		"so many logins":   {func(*Terms) {}, many, ""},
	} {
		t.Run(name, func(t *testing.T) {
			terms := terms()
			tt.change(&terms)
			judge(t, terms, tt.story, tt.broken)
		})
	}
}

// Without faults, only the request that claims a session needs one more round trip.
func TestAClaimTakesTime(t *testing.T) {
	strict := terms()
	strict.Strict, strict.Latency = true, milli
	slow := func(from int) func(r *Request) {
		return func(r *Request) { r.Exclusive, r.Open, r.Seal = false, at(from+22), at(from+23) }
	}
	first := clicks().comes(30, "T", 1, 1, 2).but(slow(30)).but(func(r *Request) { r.End, r.Done = at(54), at(54) })
	judge(t, strict, first, "")
	judge(t, strict, first.comes(60, "T", 1, 1, 2).but(slow(60)).but(func(r *Request) { r.End, r.Done = at(84), at(84) }), "every wait is bounded")
}

package history

import (
	"testing"
)

// A tale is the history of one user, in the order in which the requests began.
type tale []record

// tell adds a request that lasts from one millisecond to another. If to is 0, the request has no end.
func (s tale) tell(from, to int64, op deed, got outcome) tale {
	got.known = to > 0
	r := record{client: len(s), op: op, got: got, call: from * 1e6, back: to * 1e6}
	if to == 0 {
		r.back = never
	}
	return append(s, r)
}

func (s tale) write(from, to int64, cookie string, n int) tale {
	return s.tell(from, to, deed{what: Write, cookie: cookie}, outcome{status: 200, user: "ann", n: n})
}

func (s tale) over(from, to int64, cookie string) tale {
	return s.tell(from, to, deed{what: Read, cookie: cookie}, outcome{status: 200})
}

func (s tale) list(from, to int64, labels ...int) tale {
	return s.tell(from, to, deed{what: list}, outcome{status: 200, labels: labels})
}

func (s tale) endAll(from, to int64, but string, n int) tale {
	return s.tell(from, to, deed{what: endAll, cookie: but}, outcome{status: 200, n: n})
}

func (s tale) end(from, to int64, cookie string, status int) tale {
	return s.tell(from, to, deed{what: end, cookie: cookie}, outcome{status: status})
}

func (s tale) renew(from, to int64, cookie, next string) tale {
	return s.tell(from, to, deed{what: renew, cookie: cookie}, outcome{status: 200, user: "ann", cookie: next})
}

func (s tale) logout(from, to int64, cookie string) tale {
	return s.tell(from, to, deed{what: Logout, cookie: cookie}, outcome{status: 204})
}

func (s tale) login(from, to int64, label int, old, cookie string) tale {
	return s.tell(from, to, deed{what: Login, label: label, cookie: old}, outcome{status: 200, cookie: cookie})
}

// These are histories that break promises to a user, and histories that only look wrong.
func TestCheckOfAccounts(t *testing.T) {
	t.Parallel()
	two := tale{}.login(1, 2, 0, "", "a").login(3, 4, 1, "", "b")
	const gone = 409
	moved := two.write(5, 6, "a", 1).tell(7, 8, deed{what: renew, cookie: "a"}, outcome{status: 200, user: "ann", n: 1, cookie: "c"})
	renewed := moved.login(9, 10, 2, "a", "d").tell(11, 12, deed{what: renew, cookie: "c"}, outcome{status: 200, user: "ann", n: 1, cookie: "e"})
	for name, tt := range map[string]struct {
		tale
		right bool
	}{
		"two sessions":                     {two.write(5, 6, "a", 1).write(7, 8, "b", 1).list(9, 10, 0, 1), true},
		"a lost update":                    {two.write(5, 6, "a", 1).write(7, 8, "a", 1), false},
		"end all":                          {two.endAll(5, 6, "", 2).over(7, 8, "a").list(9, 10), true},
		"end all, and one is alive":        {two.endAll(5, 6, "", 2).write(7, 8, "b", 1), false},
		"end all, and one is listed":       {two.endAll(5, 6, "", 2).list(7, 8, 1), false},
		"all but one":                      {two.endAll(5, 6, "b", 1).over(7, 8, "a").write(9, 10, "b", 1).list(11, 12, 1), true},
		"all but one, and that one ends":   {two.endAll(5, 6, "b", 1).over(7, 8, "b"), false},
		"a wrong number":                   {two.endAll(5, 6, "", 1), false},
		"one after the other":              {two.endAll(5, 20, "", 2).over(6, 7, "a").write(8, 9, "b", 1), false},
		"in time":                          {two.endAll(5, 20, "", 2).write(6, 7, "b", 1).over(8, 9, "a"), true},
		"no answer, and done":              {two.endAll(5, 0, "", 0).over(7, 8, "a").over(9, 10, "b"), true},
		"no answer, and not done":          {two.endAll(5, 0, "", 0).write(7, 8, "a", 1).write(9, 10, "b", 1), true},
		"no answer, and done late":         {two.endAll(5, 0, "", 0).write(7, 8, "a", 1).over(9, 10, "a"), true},
		"no answer, and half done":         {two.endAll(5, 0, "", 0).over(7, 8, "a").write(9, 10, "b", 1), false},
		"one is ended":                     {two.end(5, 6, "a", 204).over(7, 8, "a").write(9, 10, "b", 1).end(11, 12, "a", 404), true},
		"one is ended twice":               {two.end(5, 6, "a", 204).end(7, 8, "a", 204), false},
		"an end of nothing":                {two.end(5, 6, "a", 404), false},
		"revived":                          {two.write(5, 6, "a", 1).end(7, 8, "a", 204).over(9, 10, "a").write(11, 12, "a", 2), false},
		"a new ID":                         {two.renew(5, 6, "a", "c").over(7, 8, "a").write(9, 10, "c", 1).list(11, 12, 0, 1), true},
		"a new ID while the old is spared": {two.endAll(6, 7, "a", 2).renew(5, 10, "a", "c").tell(8, 9, deed{what: Read, cookie: "a"}, outcome{status: 200, user: "ann"}).over(11, 12, "c"), true},
		"a new ID after the old is spared": {two.endAll(6, 7, "a", 1).renew(8, 10, "a", "c").over(11, 12, "c"), false},
		"a new ID escapes":                 {two.endAll(5, 6, "", 2).renew(7, 8, "a", "c"), false},
		"a new ID that was ended":          {two.endAll(6, 7, "", 2).renew(5, 8, "a", "c").over(9, 10, "c"), true},
		"a new ID escapes, under way":      {two.endAll(6, 7, "", 2).renew(5, 8, "a", "c").write(9, 10, "c", 1), false},
		"the list shows both ids":          {two.login(5, 9, 2, "a", "c").list(6, 7, 0, 1, 2).list(10, 11, 1, 2), true},
		"the list shows the old one":       {two.login(5, 9, 2, "a", "c").list(10, 11, 0, 1, 2), false},
		"the list forgets one":             {two.list(5, 6, 0), false},
		"the list shows nobody's":          {two.list(5, 6, 0, 1, 7), false},
		"a login where one was ended":      {two.end(5, 6, "a", 204).login(7, 8, 2, "a", "c").write(9, 10, "c", 1).list(11, 12, 1, 2), true},
		"a login loses what was there":     {two.write(5, 6, "a", 1).login(7, 8, 2, "a", "c").write(9, 10, "c", 1), false},
		"a login is refused just after it": {two.endAll(6, 7, "", 2).tell(8, 11, deed{what: Login, label: 2}, outcome{status: gone}), true},
		"a login is refused beside it":     {two.tell(5, 8, deed{what: Login, label: 2}, outcome{status: gone}).endAll(6, 7, "", 2), true},
		"a login is refused after it":      {two.endAll(5, 6, "", 2).tell(7, 8, deed{what: Login, label: 2}, outcome{status: gone}), false},
		"begins anew, and it was ended":    {two.tell(5, 8, deed{what: Write, cookie: "a"}, outcome{status: 200, n: 1, cookie: "g"}).end(6, 7, "a", 204), true},
		"begins anew, and it is alive":     {two.tell(5, 6, deed{what: Write, cookie: "a"}, outcome{status: 200, n: 1, cookie: "g"}), false},
		"a logout ends what it has become": {two.renew(5, 6, "a", "c").logout(7, 8, "a").over(9, 10, "c").write(11, 12, "b", 1).list(13, 14, 1), true},
		"a logout ends another":            {two.renew(5, 6, "a", "c").logout(7, 8, "a").over(9, 10, "b"), false},
		"a login gives way":                {moved.login(9, 10, 2, "a", "d").list(11, 12, 1, 2).write(13, 14, "d", 2).over(15, 16, "c"), true},
		"a login gives way at once":        {moved.login(9, 10, 2, "a", "d").over(11, 12, "c"), false},
		"a login is listed twice":          {two.renew(7, 8, "a", "c").login(9, 10, 2, "a", "d").list(11, 12, 0, 1, 2), false},
		"a login loses the cart":           {moved.login(9, 10, 2, "a", "d").write(11, 12, "d", 1), false},
		"the older one is used first":      {moved.login(9, 10, 2, "a", "d").write(11, 12, "c", 2).write(13, 14, "d", 2).write(15, 16, "c", 3), true},
		"the older one is renewed first":   {renewed.list(13, 14, 0, 1, 2).write(15, 16, "d", 2).list(17, 18, 0, 1, 2).write(19, 20, "e", 2), true},
		"what was renewed gives way":       {renewed.write(13, 14, "d", 2).over(15, 16, "e"), false},
		"claimed by a request that is slow": {moved.login(9, 10, 2, "a", "d").end(12, 13, "d", 204).over(14, 15, "d").list(16, 17, 1).
			tell(11, 20, deed{what: Read, cookie: "d"}, outcome{status: 200, user: "ann", n: 1}), true},
		"a login that is used is replaced": {two.renew(5, 6, "a", "c").write(7, 8, "c", 1).login(9, 10, 2, "a", "d").write(11, 12, "d", 1).over(13, 14, "c"), false},
		"refused, and nobody has ended it": {two.tell(5, 6, deed{what: Write, cookie: "a"}, outcome{status: gone}), false},
		"refused, and it was ended":        {two.tell(5, 8, deed{what: Write, cookie: "a"}, outcome{status: gone}).end(6, 7, "a", 204), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &life{user: "ann", done: tt.tale, logins: 3}
			if err := l.check(true); (err == nil) != tt.right {
				t.Errorf("check: %v", err)
			}
		})
	}
}

// An EndAll is repeated if its reply was lost. The repetition reports a smaller number of ended sessions.
// Still, EndAll takes effect once, and ends no session that began after it.
func TestARepeatedEndAll(t *testing.T) {
	t.Parallel()
	two := tale{}.login(1, 2, 0, "", "a").login(3, 4, 1, "", "b")
	for name, tt := range map[string]struct {
		tale
		right bool
	}{
		"a login under way":      {two.endAll(5, 20, "", 0).over(6, 7, "a").over(8, 9, "b").login(10, 11, 2, "", "c").write(21, 22, "c", 1), true},
		"and it is over":         {two.endAll(5, 20, "", 0).over(6, 7, "a").over(8, 9, "b").login(10, 11, 2, "", "c").over(21, 22, "c"), false},
		"a login after it":       {two.endAll(5, 20, "", 2).login(21, 22, 2, "", "c").over(23, 24, "c"), false},
		"one after the other":    {two.endAll(5, 20, "", 2).over(6, 7, "a").write(8, 9, "b", 1), false},
		"one alive that it ends": {two.endAll(5, 20, "", 2).write(21, 22, "b", 1), false},
	} {
		l := &life{done: tt.tale, logins: 3}
		if err := l.check(false); (err == nil) != tt.right {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.check(true); err == nil {
			t.Errorf("%s: the history is right even if no reply was lost", name)
		}
	}
}

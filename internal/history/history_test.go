package history

import (
	"net/http"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A story is a history, in the order in which the requests began.
type story []porcupine.Operation

// tell adds an operation that lasts from one millisecond to another. If to is 0, the operation has no end.
func (s story) tell(from, to int, what, cookie string, got Answer) story {
	end := time.Duration(to) * time.Millisecond
	got.Known = to > 0
	return append(s, entry(len(s), Operation{What: what, Cookie: cookie}, got, time.Duration(from)*time.Millisecond, end))
}

// byLink makes the last operation a navigation.
func (s story) byLink() story {
	last := &s[len(s)-1]
	op := last.Input.(Operation)
	op.Navigate = true
	last.Input = op
	return s
}

func number(n int) Answer { return Answer{Status: http.StatusOK, N: n} }

var (
	begun    = story{}.tell(1, 2, Begin, "", Answer{Status: http.StatusNoContent, Cookie: "a"})
	refused  = Answer{Status: http.StatusConflict}
	done     = Answer{Status: http.StatusNoContent}
	loggedIn = Answer{Status: http.StatusNoContent, Cookie: "b"}
	members  = Answer{Status: http.StatusNoContent, Cookie: "a-login=b"}
	afresh   = Answer{Status: http.StatusNoContent, Anew: true}
	anew     = Answer{Status: http.StatusOK, Anew: true}
	unknown  = Answer{}
)

// These are histories that break promises as clients see them, and histories that only look wrong.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		story
		right bool
	}{
		"one after another":        {begun.tell(3, 4, Write, "a", number(1)).tell(5, 6, Write, "a", number(2)).tell(7, 8, Read, "a", number(2)), true},
		"at once, in either order": {begun.tell(3, 9, Write, "a", number(2)).tell(4, 8, Write, "a", number(1)), true},

		"a lost update":            {begun.tell(3, 9, Write, "a", number(1)).tell(4, 8, Write, "a", number(1)), false},
		"a write that was lost":    {begun.tell(3, 4, Write, "a", number(1)).tell(5, 6, Read, "a", number(0)), false},
		"a read back in time":      {begun.tell(3, 4, Write, "a", number(1)).tell(5, 6, Write, "a", number(2)).tell(7, 8, Read, "a", number(1)), false},
		"a stale write":            {begun.tell(3, 0, Write, "a", unknown).tell(4, 5, Write, "a", number(1)).tell(6, 7, Write, "a", number(2)).tell(8, 9, Read, "a", number(1)), false},
		"another session's number": {begun.tell(3, 4, Write, "a", number(1)).tell(5, 6, Read, "a", number(7)), false},

		"no answer, and done":       {begun.tell(3, 0, Write, "a", unknown).tell(5, 6, Read, "a", number(1)), true},
		"no answer, and not done":   {begun.tell(3, 0, Write, "a", unknown).tell(5, 6, Read, "a", number(0)), true},
		"no answer, and done late":  {begun.tell(3, 0, Write, "a", unknown).tell(5, 6, Read, "a", number(0)).tell(7, 8, Read, "a", number(1)), true},
		"no answer, and done twice": {begun.tell(3, 0, Write, "a", unknown).tell(5, 6, Read, "a", number(2)), false},
		"no answer, and undone":     {begun.tell(3, 0, Write, "a", unknown).tell(5, 6, Read, "a", number(1)).tell(7, 8, Read, "a", number(0)), false},

		"out is out":                     {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Write, "a", anew).tell(7, 8, Read, "a", number(0)), true},
		"revived":                        {begun.tell(3, 4, Write, "a", number(1)).tell(5, 6, Logout, "a", done).tell(7, 8, Read, "a", number(1)), false},
		"written after the end":          {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Write, "a", number(1)), false},
		"the old cookie after a login":   {begun.tell(3, 4, Login, "a", loggedIn).tell(5, 6, Write, "a", refused).tell(7, 8, Write, "b", number(1)), true},
		"the old cookie opens it":        {begun.tell(3, 4, Login, "a", loggedIn).tell(5, 6, Write, "a", number(1)), false},
		"a login loses the number":       {begun.tell(3, 4, Write, "a", number(1)).tell(5, 6, Login, "a", loggedIn).tell(7, 8, Read, "b", number(0)), false},
		"refused, and nobody logged out": {begun.tell(3, 4, Write, "a", refused), false},
		"a logout without an answer":     {begun.tell(3, 0, Logout, "a", unknown).tell(5, 6, Write, "a", number(1)).tell(7, 8, Write, "a", anew), true},
		"anew, and alive after that":     {begun.tell(3, 0, Logout, "a", unknown).tell(5, 6, Write, "a", anew).tell(7, 8, Write, "a", number(1)), false},

		"a double click, both done":       {begun.tell(3, 0, Login, "a", unknown).tell(4, 6, Login, "a", afresh).tell(7, 8, Write, "a", refused), true},
		"a double click, one done":        {begun.tell(3, 0, Login, "a", unknown).tell(4, 6, Login, "a", loggedIn).tell(7, 8, Write, "b", number(1)), true},
		"a double click shuts out":        {begun.tell(3, 0, Login, "a", unknown).tell(4, 6, Login, "a", refused), false},
		"both clicks move it":             {begun.tell(3, 4, Login, "a", loggedIn).tell(5, 6, Login, "a", Answer{Status: http.StatusNoContent, Cookie: "c"}), false},
		"the old cookie after both":       {begun.tell(3, 0, Login, "a", unknown).tell(4, 6, Login, "a", afresh).tell(7, 8, Write, "a", number(1)), false},
		"a login loses what is there":     {begun.tell(3, 4, Login, "a", afresh), false},
		"a link with a dead cookie":       {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Write, "a", anew).byLink(), true},
		"a link is shut out":              {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Write, "a", refused).byLink(), false},
		"a link loses what is there":      {begun.tell(3, 4, Write, "a", anew).byLink(), false},
		"a script is shut out":            {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Write, "a", refused), false},
		"a holder finds it logged out":    {begun.tell(3, 7, Logout, "a", done).tell(3, 8, Write, "a", refused).tell(4, 8, Read, "a", refused), true},
		"a read is shut out":              {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Read, "a", refused), false},
		"a logout with a moved cookie":    {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", loggedIn).tell(7, 8, Logout, "a-login=b", done).tell(9, 10, Write, "b", number(1)), false},
		"a refused logout":                {begun.tell(3, 4, Logout, "a", refused), false},
		"a refused logout beside a login": {begun.tell(3, 8, Login, "a", members).tell(4, 7, Logout, "a", refused), false},
		"a refused logout beside another": {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", loggedIn).tell(7, 10, Logout, "a-login=b", done).tell(8, 11, Logout, "b", refused).tell(12, 13, Write, "b", anew), true},
		"a refused logout after another":  {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", loggedIn).tell(7, 8, Logout, "a-login=b", done).tell(1100, 1101, Logout, "b", refused), false},
		"a link that is lent the session": {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", loggedIn).tell(7, 8, Logout, "a-login=b", done).tell(9, 10, Write, "b", refused).byLink(), true},
		"a link that is lent it too late": {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", loggedIn).tell(7, 8, Logout, "a-login=b", done).tell(1100, 1101, Write, "b", refused).byLink(), false},
		"another logout after it":         {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", loggedIn).tell(7, 8, Logout, "b", done).tell(9, 10, Logout, "a-login=b", done).tell(11, 12, Write, "b", anew), true},
		"a guest's moved cookie":          {begun.tell(3, 4, Login, "a", loggedIn).tell(5, 6, Logout, "a", done).tell(7, 8, Write, "b", number(1)), true},
		"a script with a moved cookie":    {begun.tell(3, 4, Login, "a", loggedIn).tell(5, 6, Write, "a", anew), false},
		"a link with a moved cookie":      {begun.tell(3, 4, Login, "a", loggedIn).tell(5, 6, Write, "a", anew).byLink(), true},
		"a member's login that is done":   {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", Answer{Status: http.StatusNoContent, Cookie: "a-login=c"}).tell(7, 8, Login, "a-login=b", refused), true},
		"a member's login is done twice":  {begun.tell(3, 4, Login, "a", members).tell(5, 6, Login, "a-login=b", Answer{Status: http.StatusNoContent, Cookie: "a-login=c"}).tell(7, 8, Login, "a-login=b", afresh), false},
		"a refusal with a cookie":         {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Write, "a", Answer{Status: http.StatusConflict, Cookie: "b"}), false},
		"a read that sets a cookie":       {begun.tell(3, 4, Logout, "a", done).tell(5, 6, Read, "a", Answer{Status: http.StatusOK, Cookie: "b"}), false},
		"a write by a link, while alive":  {begun.tell(3, 4, Write, "a", number(1)).byLink(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := Check(tt.story); (err == nil) != tt.right {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

package middleware

import (
	"testing"

	"github.com/a2139e8d/latchkey/session"
)

// The whole table: where the session came from, and what was done to it.
func TestDecide(t *testing.T) {
	t.Parallel()
	var (
		nothing      = session.Change{}
		set          = session.Change{Changed: true}
		renewed      = session.Change{Renewed: true}
		login        = session.Change{Changed: true, Renewed: true}
		logout       = session.Change{Destroyed: true}
		setAndLogout = session.Change{Changed: true, Destroyed: true}

		loginAndLogout = session.Change{Changed: true, Renewed: true, Destroyed: true}
	)
	for o, row := range map[origin]map[*session.Change]action{
		noCookie:  {&nothing: leave, &set: create, &renewed: leave, &login: create, &logout: leave, &setAndLogout: leave},
		unknownID: {&nothing: leave, &set: create, &renewed: leave, &login: create, &logout: forget, &setAndLogout: forget},
		goneID:    {&nothing: leave, &set: refuse, &renewed: anew, &login: anew, &logout: leave, &setAndLogout: leave, &loginAndLogout: leave},
		gonePage:  {&nothing: leave, &set: anew, &renewed: anew, &login: anew, &logout: leave, &setAndLogout: leave, &loginAndLogout: leave},
		readOnly:  {&nothing: leave},
		locked:    {&nothing: touch, &set: save, &renewed: renew, &login: renew, &logout: destroy, &setAndLogout: destroy},
	} {
		for change, want := range row {
			if got := decide(o, *change); got != want {
				t.Errorf("origin %d, %+v: action %d, want %d", o, *change, got, want)
			}
		}
	}
}

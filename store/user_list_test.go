package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// What happens while a list is made: a session that gets a new id is shown by that, and not left out,
// and what is ended is not shown.
func TestListUserWhileSessionsChange(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		for what, tt := range map[string]struct {
			change func(a, b string)
			want   func(a, b, c string) []string
		}{
			"nothing": {func(_, _ string) {}, func(a, b, _ string) []string { return []string{a, b} }},
			"a new id": {func(a, _ string) {
				h := takeID(t, other, a)
				wantError(t, "Renew", h.Renew(t.Context(), idOf(other, "ann", 3), []byte("1")), nil)
			}, func(_, b, c string) []string { return []string{b, c} }},
			"all but one": {func(_, b string) {
				endAll(t, other, b)
			}, func(_, b, _ string) []string { return []string{b} }},
		} {
			s.Do(t, "FLUSHALL")
			a, b, c := login(t, other, "ann", 1), login(t, other, "ann", 2), idOf(other, "ann", 3)
			st, proxy := tapped(t, s, patient)
			changed := false
			proxy.Inject(func(cmd redistest.Command) redistest.Fault {
				if cmd.Name == "MGET" && !changed { // the list has been read, and no record
					changed = true
					tt.change(a, b)
				}
				return redistest.Pass
			})
			listed, err := st.ListUser(t.Context(), "ann", Terms{TTL: time.Hour})
			var got []string
			for _, l := range listed {
				got = append(got, l.ID)
			}
			slices.Sort(got)
			if want := tt.want(a, b, c); err != nil || !changed || !slices.Equal(got, want) {
				t.Errorf("%s: listed %q, %v, want %q", what, got, err, want)
			}
		}
	})
}

// Where it looks as if a user's list were lost, a login that comes in between is not ended with it.
func TestListUserEndsNoLogin(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		wantError(t, "End", other.End(t.Context(), login(t, other, "ann", 1)), nil) // the mark is left
		st, proxy := tapped(t, s, patient)
		next := ""
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(cmd.Name, "EVAL") && next == "" {
				next = login(t, other, "ann", 2)
			}
			return redistest.Pass
		})
		_, err := st.ListUser(t.Context(), "ann", Terms{})
		if wantError(t, "ListUser", err, nil); next == "" {
			t.Fatal("no script was asked")
		}
		wantAlive(t, other, next, "0")
	})
}

// An EndAll that is repeated, since its reply was lost, ends those, too, who have logged in meanwhile:
// none of them stays alive without being on the list.
func TestARepeatedEndUser(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		a, b := login(t, other, "ann", 1), login(t, other, "ann", 2)
		_, err := other.EndUser(t.Context(), "bob") // Redis knows the script from now on
		wantError(t, "EndUser", err, nil)
		st, proxy := tapped(t, s, patient)
		tries, next := 0, ""
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if !strings.HasPrefix(cmd.Name, "EVAL") {
				return redistest.Pass
			}
			if tries++; tries == 1 {
				return redistest.DropReply
			}
			if next == "" {
				next = login(t, other, "ann", 3)
			}
			return redistest.Pass
		})
		_, err = st.EndUser(t.Context(), "ann", b)
		if wantError(t, "EndUser", err, nil); next == "" {
			t.Fatal("it was not repeated")
		}
		wantOver(t, other, a)
		wantOver(t, other, next)
		wantAlive(t, other, b, "0")
		if listed, err := other.ListUser(t.Context(), "ann", Terms{}); len(listed) != 1 || err != nil {
			t.Errorf("listed %+v, %v", listed, err)
		}
	})
}

// A copy of an EndAll that comes late, after another one, brings none of those back that this has ended.
func TestALateEndUser(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		proxy := redistest.NewProxy(t, s)
		st, other := New(proxy.Pool(t, 8), patient), process(t, s)
		a, b := login(t, other, "ann", 1), login(t, other, "ann", 2)
		var late []any
		for range 2 { // the first time Redis does not know the script
			endAll(t, st, a)
		}
		for _, cmd := range proxy.Commands() {
			if cmd.Name == "EVALSHA" {
				late = nil
				for _, arg := range cmd.Args {
					late = append(late, arg)
				}
			}
		}
		c := login(t, other, "ann", 3)
		endAll(t, other, a)
		if late == nil {
			t.Fatal("no script was sent")
		}
		s.Do(t, "EVALSHA", late...)
		wantOver(t, other, b)
		wantOver(t, other, c)
		wantAlive(t, other, a, "0")
	})
}

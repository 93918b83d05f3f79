package history

import (
	"testing"
	"testing/synctest"
	"time"
)

// These are histories of streams that Check accepts, and others that it refuses.
func TestStreams(t *testing.T) {
	t.Parallel()
	type play func(h *Streams)
	const soon = 2 * time.Second
	logout := func(h *Streams, session string, known bool) {
		called := time.Now()
		time.Sleep(time.Second)
		h.End(session, called, known)
	}
	endAll := func(h *Streams) { h.EndAll("ann", time.Now(), true) }
	for name, tt := range map[string]struct {
		play  play
		right bool
	}{
		"a stream ends in time": {func(h *Streams) { s := h.Open("a"); logout(h, "a", true); time.Sleep(soon); s.Close(true) }, true},
		"a stream ends late": {func(h *Streams) {
			s := h.Open("a")
			logout(h, "a", true)
			time.Sleep(soon + time.Nanosecond)
			s.Close(true)
		}, false},
		"a stream never ends":                   {func(h *Streams) { h.Open("a"); logout(h, "a", true); time.Sleep(time.Minute) }, false},
		"another session ends":                  {func(h *Streams) { h.Open("a"); logout(h, "b", true); time.Sleep(time.Minute) }, true},
		"a stream ends, its session does not":   {func(h *Streams) { s := h.Open("a"); logout(h, "b", true); s.Close(true) }, false},
		"a stream ends before its session":      {func(h *Streams) { h.Open("a").Close(true); time.Sleep(time.Nanosecond); logout(h, "a", true) }, false},
		"the client has gone":                   {func(h *Streams) { h.Open("a").Close(false) }, true},
		"the end was not answered":              {func(h *Streams) { h.Open("a"); logout(h, "a", false); time.Sleep(time.Minute) }, true},
		"no answer, and the stream ends":        {func(h *Streams) { s := h.Open("a"); logout(h, "a", false); time.Sleep(time.Minute); s.Close(true) }, true},
		"a stream begins after the end":         {func(h *Streams) { logout(h, "a", true); time.Sleep(time.Nanosecond); h.Open("a").Close(true) }, false},
		"a guest's session is not a user's":     {func(h *Streams) { h.Open("a"); endAll(h); time.Sleep(time.Minute) }, true},
		"a guest's stream ends with the user's": {func(h *Streams) { s := h.Open("a"); endAll(h); s.Close(true) }, false},
		"the user's others stay": {func(h *Streams) {
			h.Open("a")
			h.Login("a", "bob", time.Now(), true)
			time.Sleep(time.Nanosecond)
			endAll(h)
			time.Sleep(time.Minute)
		}, true},
		"a stream of the user stays": {func(h *Streams) {
			h.Open("a")
			h.Login("a", "ann", time.Now(), true)
			time.Sleep(time.Nanosecond)
			endAll(h)
			time.Sleep(time.Minute)
		}, false},
		"the login comes later": {func(h *Streams) {
			h.Open("a")
			endAll(h)
			time.Sleep(time.Nanosecond)
			h.Login("a", "ann", time.Now(), true)
			time.Sleep(time.Minute)
		}, true},
		"the login comes later, the stream ends": {func(h *Streams) {
			s := h.Open("a")
			endAll(h)
			time.Sleep(time.Nanosecond)
			h.Login("a", "ann", time.Now(), true)
			s.Close(true)
		}, false},
		"the login was not answered": {func(h *Streams) {
			h.Open("a")
			h.Login("a", "ann", time.Now(), false)
			time.Sleep(time.Nanosecond)
			endAll(h)
			time.Sleep(time.Minute)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &Streams{}
				tt.play(h)
				if err := h.Check(func(returned time.Time) time.Time { return returned.Add(soon) }); (err == nil) != tt.right {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

package world

import (
	"net/http"
	"slices"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
)

// These are the names of a guest's cookie and of a member's.
const (
	guestName  = "__Host-session"
	memberName = "__Host-session-login"
)

// A visitor is a browser: a jar with the cookies of a guest and of a member. The world's mu guards it.
type visitor struct {
	member, guest cookie
	latest        string // the ID of the session whose cookie it got last
}

// A cookie is what a browser has of a session; the zero cookie is none.
type cookie struct{ name, value, id string }

// jar returns where the cookie of a name is kept.
func (v *visitor) jar(name string) *cookie {
	if name == memberName {
		return &v.member
	}
	return &v.guest
}

// header returns the header with all cookies.
func (v *visitor) header() string {
	text := ""
	for _, c := range []cookie{v.member, v.guest} {
		if c.value == "" {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += c.name + "=" + c.value
	}
	return text
}

// drop deletes the cookie of a name.
func (v *visitor) drop(name string) {
	c := v.jar(name)
	deleted := c.id
	*c = cookie{}
	if v.latest == deleted {
		v.latest = v.first()
	}
}

// first returns the ID of the session that a request asks for first: the member's.
func (v *visitor) first() string {
	if v.member.id != "" {
		return v.member.id
	}
	return v.guest.id
}

// set adds a cookie to the jar.
func (v *visitor) set(c cookie) { *v.jar(c.name), v.latest = c, c.id }

// keep changes the visitor's jar as the cookies of a response say.
func (w *World) keep(c *call, answer *response) {
	if answer.status == 0 || c.process.dead && c.process.died <= answer.at {
		return
	}
	hasLeft := c.Leave > 0 && c.seen.Leaves <= c.seen.End
	v := &w.visitors[c.Visitor]
	for _, given := range (&http.Response{Header: answer.header}).Cookies() {
		fate := &c.seen.GuestsCookie
		if given.Name == memberName {
			fate = &c.seen.MembersCookie
		}
		if given.MaxAge < 0 {
			*fate = history.Deleted
			if !hasLeft {
				w.forgotten(v.jar(given.Name).id)
				v.drop(given.Name)
			}
			continue
		}
		*fate = history.Set
		its := cookie{given.Name, given.Value, c.session.ID()}
		c.seen.SetID, c.seen.SetUser = its.id, c.session.User()
		if !slices.Contains(w.ids, its.id) {
			w.ids = append(w.ids, its.id)
			w.cookies[its.id] = its
		}
		if !hasLeft {
			w.forgotten(v.jar(its.name).id)
			v.set(its)
		}
		w.noteLocked(c, "sets a cookie for", its.id, nil)
	}
}

// forgotten notes the ID of a session whose cookie no browser has any more. Somebody else may still have it.
func (w *World) forgotten(id string) {
	if id != "" {
		w.dropped = append(w.dropped, id)
	}
}

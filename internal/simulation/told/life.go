package told

import (
	"slices"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/middleware"
)

// lives judges that the beginning, the new IDs and the end of each session are told once.
func (j *judge) lives() {
	const rule = "what happens to a session is told once"
	type key struct{ what, id string }
	count := make(map[key]int)
	for _, e := range j.Events {
		x, ok := e.What.(*middleware.SessionEvent)
		if !ok {
			continue
		}
		switch x.What {
		case "began", "renewed", "ended":
			k := key{x.What, x.Session}
			if count[k]++; count[k] == 2 {
				j.broken(rule, j.byNumber[e.Request], "%s %s of %s is told again", x.What, x.How, x.Session)
			}
			j.did(e, x)
		}
	}
	for _, r := range j.requests {
		if r.event == nil || r.exited() {
			continue
		}
		e := r.event
		began, renewed, loggedIn, ended := e.Began, e.Renewed, e.LoggedIn, e.Ended
		j.flags(r)
		how := ""
		if loggedIn {
			how = "login"
		}
		if began {
			j.toldOnce(r, "began", how, r.home(), "")
		}
		if renewed && how == "" {
			how = "renew"
		}
		if renewed {
			j.toldOnce(r, "renewed", how, r.last.Cookie, r.home())
		}
		if ended && r.Err == nil && r.last.ID != "" && !r.last.New && !j.endedBefore(r) {
			j.toldOnce(r, "ended", "destroy", r.last.ID, "")
		}
	}
	for i := range j.Endings {
		e := &j.Endings[i]
		if e.ID == "" || e.Outcome != history.Answered || e.Cause != history.None {
			continue
		}
		id := e.ID
		for j.ends[id] == 0 && j.moved[id] != "" { // it has ended the session to which the ID has moved
			id = j.moved[id]
		}
		if j.ends[id] != 1 {
			j.broken(rule, nil, "#%d has ended %s, which is told %d times", e.Number, id, j.ends[id])
		}
	}
}

// flags judges that a request's event agrees with the events of its session.
func (j *judge) flags(r *request) {
	var told [4]bool
	for _, x := range r.sessions {
		told[0] = told[0] || x.What == "began"
		told[1] = told[1] || x.What == "renewed"
		told[2] = told[2] || x.How == "login"
		told[3] = told[3] || x.How == "destroy"
	}
	if e := r.event; told != [4]bool{e.Began, e.Renewed, e.LoggedIn, e.Ended} {
		j.broken("a request's event says what has happened to its session", r, "began, renewed, logged in, ended: %v, %v was told", [4]bool{e.Began, e.Renewed, e.LoggedIn, e.Ended}, told)
	}
}

// endedBefore reports whether the session that a logout had may have ended before. Then the logout tells the end
// of the session to which the ID of its cookie has moved.
func (j *judge) endedBefore(r *request) bool {
	own := slices.ContainsFunc(r.sessions, func(x *middleware.SessionEvent) bool { return x.What == "ended" && x.Session == r.last.ID })
	return !own && j.mayBeEnded(r)
}

// home is the ID that a request's session has in the end. It is anyID if the commit has failed, perhaps after the
// new ID had begun: then nobody gets its cookie.
func (r *request) home() string {
	switch {
	case r.last.SetID != "":
		return r.last.SetID
	case r.event.Err != nil:
		return anyID
	}
	return r.event.Session
}

const anyID = "*"

// toldOnce judges that a request has told once what it has done.
func (j *judge) toldOnce(r *request, what, how, id, to string) {
	n := 0
	for _, x := range r.sessions {
		if x.What == what && x.How == how && (x.Session == id || id == anyID) && (x.To == to || to == anyID) {
			n++
		}
	}
	if n != 1 {
		j.broken("what happens to a session is told once", r, "%s %s of %s is told %d times", what, how, id, n)
	}
}

// did judges an event by which a request tells of a session: the request must have done that.
func (j *judge) did(e Event, x *middleware.SessionEvent) {
	r := j.byNumber[e.Request]
	if r == nil {
		if x.What != "ended" || x.How != "end" && x.How != "end_all" {
			j.broken("what is told has happened", nil, "%s %s of %s, by no request", x.What, x.How, x.Session)
		}
		return
	}
	p := r.last
	ok := true
	switch x.What + " " + x.How {
	case "began ":
		ok = p.New && p.Effect == history.Write && p.LogsIn == ""
	case "began login":
		ok = p.New && p.LogsIn != ""
	case "renewed renew":
		ok = p.Renews && p.LogsIn == ""
	case "renewed login", "ended max_sessions", "ended other_user":
		ok = p.LogsIn != ""
	case "ended destroy":
		ok = p.Destroys
	case "ended end_all":
		ok = p.Effect != history.Nothing
	case "ended gave_way":
		ok = x.Session != p.Cookie
	default:
		ok = false
	}
	if !ok {
		j.broken("what is told has happened", r, "%s %s of %s", x.What, x.How, x.Session)
	}
}

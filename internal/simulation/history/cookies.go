package history

// cookies judges what responses do to the client's cookies.
func (h *history) cookies() {
	for i := range h.all {
		r := &h.all[i]
		switch {
		case r.Outcome == Answered && r.Status > 0 && r.New && r.Effect == Write && r.SetID == "":
			h.broken("a write is never lost in silence", with(r), "#%d wrote to a session that was not there, was answered %d, and got no cookie for another", r.Number, r.Status)
		case r.Status >= 400 && r.SetID != "" && r.Outcome != Answered: // a late change is a 500 after a commit
			h.broken("a refusal sets no cookie", with(r), "#%d was answered with %d and a cookie", r.Number, r.Status)
		case r.MembersCookie != Left && !r.Renews && !r.Destroys:
			h.broken("nothing else touches a member's cookie", with(r), "#%d logs nobody in or out, and its response has the member's cookie", r.Number)
		case r.Renews && r.SetID != "" && (r.MembersCookie != Set || r.GuestsCookie != Deleted):
			h.broken("a login makes the guest a member", with(r), "#%d must set the member's cookie and delete the guest's", r.Number)
		case r.Destroys && r.Outcome == Answered && r.Status > 0 && (r.Member != "" && r.MembersCookie != Deleted || r.Guest != "" && r.GuestsCookie != Deleted):
			h.broken("a logout deletes the cookies that came", with(r), "#%d has left a cookie in the browser", r.Number)
		}
	}
}

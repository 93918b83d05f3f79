package history

import (
	"strings"
	"testing"
	"time"
)

// A story is a list of requests to one session S, in the order in which they began.
type story []Request

// begun is a session that its first request has created.
var begun = story{{Number: 1, Title: "append", Began: 1 * milli, Asked: 1 * milli, Open: 1 * milli, Exclusive: true, New: true,
	ID: "S", Effect: Write, Wrote: []int{1}, Seal: 2 * milli, End: 3 * milli, Done: 3 * milli, Outcome: Answered, Status: 200, SetID: "S"}}

const milli = time.Millisecond

// look adds a request that asks for S at from ms, gets it 1 ms later, and ends at to ms.
func (s story) look(from, to int, saw ...int) story {
	r := Request{Number: len(s) + 1, Guest: "S", Cookie: "S", ID: "S", Anew: true, Exclusive: true, Saw: saw, New: len(saw) == 0,
		Began: time.Duration(from) * milli, Outcome: Answered, Status: 200}
	r.Asked, r.Open = r.Began, r.Began+milli
	r.End = time.Duration(to) * milli
	r.Seal, r.Done = r.End-milli, r.End
	return append(s[:len(s):len(s)], r)
}

// write adds a request that appends its number.
func (s story) write(from, to int, saw ...int) story {
	s = s.look(from, to, saw...)
	r := &s[len(s)-1]
	r.Effect = Write
	r.Wrote = append(append([]int(nil), saw...), r.Number)
	return s
}

// but changes the last request of the story.
func (s story) but(change func(r *Request)) story {
	change(&s[len(s)-1])
	return s
}

func unknown(r *Request)  { r.Outcome, r.Status, r.Cause = Unknown, 503, Unavailable }
func refused(r *Request)  { r.Outcome, r.Status, r.Cause = Refused, 503, Lost }
func panicked(r *Request) { r.Outcome, r.Status, r.Cause = Refused, 0, Panicked }
func destroys(r *Request) { r.Effect, r.Wrote = Destroy, nil }
func renews(r *Request)   { r.Effect, r.SetID = Renew, "T" }
func readOnly(r *Request) { r.Exclusive = false }
func again(r *Request)    { r.Again = true }
func job(r *Request)      { r.Quiet, r.Anew, r.Guest = true, false, "" }

// optimistic makes a request run without the lock, and commit at the given time.
func optimistic(from int) func(r *Request) {
	return func(r *Request) { r.Exclusive, r.Optimistic, r.Seal = false, true, at(from) }
}

// conflicts marks a request that must run again, or that cannot.
func conflicts(r *Request) { r.Outcome, r.Status, r.Cause = Refused, 0, Conflict }
func gone(r *Request)      { r.Outcome, r.Status, r.Cause = Refused, 409, Gone }
func inT(r *Request)       { r.Member, r.Guest, r.Cookie, r.ID = "T", "", "T", "T" }
func anew(r *Request)      { r.SetID, r.ID, r.Wrote = "T", "T", []int{r.Number} }
func cookieless(r *Request) {
	r.ID, r.Wrote = "T", []int{r.Number}
}

// terms are generous.
func terms() Terms {
	return Terms{TTL: time.Minute, Lifetime: time.Hour, Lease: time.Second, LockWait: 100 * milli, MaxHold: 10 * time.Second,
		Timeout: 40 * milli, MaxWaiters: 10, Latency: milli / 10, Processes: 2}
}

// These are histories that break each rule, and histories that only look wrong.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		story
		broken string // the rule; "": none is
	}{
		"one after another":       {begun.write(10, 12, 1).write(20, 22, 1, 2).look(30, 32, 1, 2, 3), ""},
		"at once, in some order":  {begun.write(10, 30, 1).write(11, 20, 1, 2), ""},
		"an old version, in time": {begun.write(10, 30, 1).look(20, 25, 1).but(readOnly), ""},

		"a lost update":             {begun.write(10, 12, 1).write(11, 13, 1), "no update is lost"},
		"a lost update, seen later": {begun.write(10, 12, 1).write(11, 13, 1).but(unknown).look(20, 22, 1, 3), "no update is lost"},
		"a write that was lost":     {begun.write(10, 12, 1).look(20, 22, 1), "an answer is seen by all who ask later"},
		"a read back in time":       {begun.write(10, 30, 1).look(15, 17, 1, 2).but(readOnly).look(20, 22, 1).but(readOnly), "an answer is seen by all who ask later"},
		"a number from nowhere":     {begun.look(10, 12, 1, 7), "what is seen was written"},
		"a torn list":               {begun.write(10, 12, 1).look(20, 22, 2), "what is seen was written"},
		"an empty list":             {begun.look(10, 12).but(func(r *Request) { r.New = false }), "what is seen was written"},

		"refused, and not seen":  {begun.write(10, 12, 1).but(refused).look(20, 22, 1), ""},
		"refused, and seen":      {begun.write(10, 12, 1).but(refused).look(20, 22, 1, 2), "nothing of a refused request is seen"},
		"a panic that was seen":  {begun.write(10, 12, 1).but(panicked).look(20, 22, 1, 2), "nothing of a refused request is seen"},
		"unknown, and done":      {begun.write(10, 12, 1).but(unknown).look(20, 22, 1, 2), ""},
		"unknown, and not done":  {begun.write(10, 12, 1).but(unknown).look(20, 22, 1), ""},
		"unknown, and undone":    {begun.write(10, 12, 1).but(unknown).look(20, 22, 1, 2).look(30, 32, 1), "an answer is seen by all who ask later"},
		"seen by one who failed": {begun.write(10, 12, 1).but(refused).look(20, 22, 1, 2).but(refused), ""},

		"out is out":                    {begun.look(10, 12, 1).but(destroys).look(20, 22).look(70, 72), ""},
		"gone, and nobody ended it":     {begun.look(10, 12), "a session is there until it ends"},
		"ended, maybe":                  {begun.look(10, 12, 1).but(destroys).but(unknown).look(20, 22), ""},
		"gone, but its end was refused": {begun.look(10, 12, 1).but(destroys).but(refused).look(20, 22), "a session is there until it ends"},
		"an end that lost a write":      {begun.look(10, 30, 1).but(destroys).write(11, 13, 1).look(40, 42), "no update is lost"},
		"an end that may have lost it":  {begun.look(10, 30, 1).but(destroys).but(unknown).write(11, 13, 1).look(40, 42), "a session is there until it ends"},
		"back from the dead":            {begun.look(10, 12, 1).but(destroys).look(20, 22, 1), "what has ended does not come back"},
		"back after it was missed":      {begun.look(10, 12, 1).but(destroys).but(unknown).look(20, 22).look(30, 32, 1), "what has ended does not come back"},
		"a login":                       {begun.write(10, 12, 1).but(renews).look(20, 22, 1, 2).but(inT), ""},
		"the old ID after a login":      {begun.write(10, 12, 1).but(renews).look(20, 22, 1), "what has ended does not come back"},
		"a login that loses":            {begun.write(10, 12, 1).write(13, 14, 1, 2).but(renews).look(20, 22, 1, 2).but(inT), "each visitor sees its own session"},
		"somebody else's session":       {begun.look(10, 12, 1).but(inT), "each visitor sees its own session"},

		"a write after the end, answered":              {begun.look(10, 12, 1).but(destroys).write(20, 22).but(cookieless), "a write is never lost in silence"},
		"a new session after the ended one":            {begun.look(10, 12, 1).but(destroys).write(20, 22).but(anew), ""},
		"a write that is shut out":                     {begun.look(10, 12, 1).but(destroys).write(20, 22).but(gone), "nobody is shut out"},
		"a session that grew too old meanwhile":        {begun.write(10, 3_600_022, 1).but(gone), ""},
		"a page that had begun to answer":              {begun.look(10, 12, 1).but(destroys).write(5, 22, 1).but(optimistic(15)).but(gone), ""},
		"a page that had not begun to answer":          {begun.look(10, 12, 1).but(destroys).write(13, 22).but(optimistic(15)).but(gone), "nobody is shut out"},
		"a job finds what is gone":                     {begun.look(10, 12, 1).but(destroys).look(20, 22).but(gone).but(job), ""},
		"a job does not find what is there":            {begun.look(20, 22).but(gone).but(job), "a session is there until it ends"},
		"a late change after a first write":            {story{}.write(10, 12).but(anew).but(func(r *Request) { r.Status = 500 }), ""},
		"a late change after a first write, no cookie": {story{}.write(10, 12).but(cookieless).but(func(r *Request) { r.Status = 500 }), "a write is never lost in silence"},
		"a refusal with a cookie":                      {begun.write(10, 12, 1).but(refused).but(func(r *Request) { r.SetID = "T" }), "a refusal sets no cookie"},

		"in time":                              {begun.look(50_000, 50_002, 1), ""},
		"too late, and gone":                   {begun.look(70_000, 70_002), ""},
		"gone too early":                       {begun.look(50_000, 50_002), "a session is there until it ends"},
		"too late, and here":                   {begun.look(70_000, 70_002, 1), "an idle session runs out"},
		"a job is no use":                      {begun.look(50_000, 50_002, 1).but(job).look(70_000, 70_002, 1), "an idle session runs out"},
		"a job needs no session in use":        {begun.write(50_000, 50_002, 1).but(job).look(70_000, 70_002), ""},
		"a job takes no time from the session": {begun.look(50_000, 50_002, 1).but(job).look(55_000, 55_002), "a session is there until it ends"},
		"a job's lock keeps the session":       {begun.look(59_000, 59_002, 1).but(job).look(61_000, 61_002, 1), ""},
		"a page is a use":                      {begun.look(50_000, 50_002, 1).but(optimistic(50_001)).look(70_000, 70_002, 1), ""},
		"a page extends the timeout":           {begun.look(50_000, 50_002, 1).but(optimistic(50_001)).look(70_000, 70_002), "a session is there until it ends"},
		"a page that wrote extends it, too":    {begun.write(50_000, 60_002, 1).but(optimistic(60_001)).look(115_000, 115_002), "a session is there until it ends"},

		"a wait":                  {begun.look(10, 150, 1).but(func(r *Request) { r.Open, r.Seal = 109*milli, 149*milli }), ""},
		"a lock given back":       {begun.look(10, 200, 1).but(func(r *Request) { r.Open, r.GaveBack = 180*milli, 100*milli }), ""},
		"a long wait":             {begun.look(10, 200, 1).but(func(r *Request) { r.Open = 180 * milli }), "every wait is bounded"},
		"a wait to be saved":      {begun.write(10, 200, 1).but(optimistic(12)), ""},
		"a long wait to be saved": {begun.write(10, 500, 1).but(optimistic(12)), "every wait is bounded"},
		"a second run":            {begun.look(10, 180, 1).but(again).but(func(r *Request) { r.Open = 175 * milli }), ""},
		"a late second run":       {begun.look(10, 200, 1).but(again).but(func(r *Request) { r.Open = 185 * milli }), "every wait is bounded"},
		"a long commit":           {begun.look(10, 300, 1).but(func(r *Request) { r.Seal = 100 * milli }), "every wait is bounded"},
		"a refusal comes late":    {begun.look(10, 200, 1).but(refused).but(func(r *Request) { r.Open, r.Seal = 0, 0 }), "every wait is bounded"},
		"held for too long":       {begun.write(10, 11_000, 1), "who holds for too long saves nothing"},
		"a script that fails":     {begun.look(10, 12, 1).but(refused).but(func(r *Request) { r.Cause = Broken }), "no script fails"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, terms(), tt.story, tt.broken) })
	}
}

// A session ends with its lifetime. A login begins a new lifetime, and a Renew does not.
func TestALoginBeginsTheLifetime(t *testing.T) {
	minute := terms()
	minute.TTL, minute.Lifetime = time.Hour, time.Minute
	logsIn := func(r *Request) { r.Effect, r.LogsIn, r.SetID, r.SetUser = Renew, "ann", "T", "ann" }
	isIn := func(r *Request) { r.Cookie, r.ID, r.User = "T", "T", "ann" }
	for name, tt := range map[string]struct {
		story
		broken string
	}{
		"used for longer":                    {begun.write(59_000, 59_002, 1).look(61_000, 61_002, 1, 2), "a session ends with its lifetime"},
		"a login":                            {begun.write(59_000, 59_002, 1).but(logsIn).look(61_000, 61_002, 1, 2).but(isIn), ""},
		"a login, and the session is missed": {begun.write(59_000, 59_002, 1).but(logsIn).look(61_000, 61_002).but(isIn), "a session is there until it ends"},
		"a minute after it":                  {begun.write(59_000, 59_002, 1).but(logsIn).look(120_000, 120_002, 1, 2).but(isIn), "a session ends with its lifetime"},
		"a Renew":                            {begun.write(59_000, 59_002, 1).but(logsIn).but(func(r *Request) { r.LogsIn = "" }).look(61_000, 61_002, 1, 2).but(isIn), "a session ends with its lifetime"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, minute, tt.story, tt.broken) })
	}
}

// If replies change places, a read may get the record of another read that is under way in its process.
func TestReadsMayChangePlaces(t *testing.T) {
	const rule = "an answer is seen by all who ask later"
	swaps := terms()
	swaps.Swaps = true
	overlap := begun.look(10, 30, 1, 3).but(readOnly).but(func(r *Request) { r.Open = at(25) }).write(11, 12, 1).look(20, 22, 1).but(readOnly)
	judge(t, swaps, overlap, "")
	judge(t, terms(), overlap, rule)
	judge(t, swaps, begun.look(10, 15, 1).but(readOnly).write(11, 12, 1).look(20, 22, 1).but(readOnly), rule)
	judge(t, swaps, begun.look(10, 30, 1).but(readOnly).but(func(r *Request) { r.Open = at(25) }).write(11, 12, 1).look(20, 22, 1), rule) // under the lock
}

// judge asserts that a story breaks the rule, or no rule if that is "".
func judge(t *testing.T, terms Terms, s story, rule string) {
	t.Helper()
	var rules []string
	for _, v := range Check(terms, s) {
		rules = append(rules, v.Rule)
	}
	if found := strings.Join(rules, "; "); !strings.Contains(found, rule) || rule == "" && found != "" {
		t.Errorf("broken: %q, want %q", found, rule)
	}
}

func at(ms int) time.Duration { return time.Duration(ms) * milli }

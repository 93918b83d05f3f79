package jar

// what is the call that a handler makes.
type what uint8

const (
	write what = iota
	login
	logout
	renew
	remember
)

func (w what) String() string {
	return [...]string{"write", "login", "logout", "renew", "remember"}[w]
}

// A work is what a request is to do.
type work struct {
	what       what
	user       user // who logs in
	navigation bool // a page is loaded; all other requests are in the background
	attacker   bool // it comes from the attacker's browser
}

// works are the words of the tests.
var works = map[string]work{
	"write":         {what: write},
	"write-nav":     {what: write, navigation: true},
	"ann":           {what: login, user: ann},
	"bob":           {what: login, user: bob},
	"logout":        {what: logout},
	"renew":         {what: renew},
	"remember":      {what: remember},
	"mallory-write": {what: write, attacker: true},
	"mallory-ann":   {what: login, user: ann, attacker: true},
	"mallory-bob":   {what: login, user: bob, attacker: true},
}

// A phase is how far a request is.
type phase uint8

const (
	waiting phase = iota
	sent
	opened
	committed
	answered
	lost
)

// A status is how a request is answered.
type status uint8

const (
	ok       status = iota
	conflict        // 409: the ID has moved or ended
	refused         // 403: RefuseLogin
)

func (c status) code() int { return [...]int{200, 409, 403}[c] }

// What a response does to a cookie is keep, drop, or the index of the session that it sets.
const (
	keep index = -2
	drop index = -3
)

// nobody is a browser without cookies.
var nobody = cookies{none, none}

// A request is the browser's, or the attacker's. Fields that are not needed any more are cleared, so that there
// are fewer states.
type request struct {
	phase phase
	after set // the requests that were answered before this one was sent

	// These count until the commit.
	came      cookies
	session   index   // that it has opened, or none
	moved     cookies // the IDs that came and have moved, or none
	overtaken bool    // EndAll was done while its handler ran

	// These count from then on.
	status status
	had    bool    // it has opened a session, or came with an ID that has moved
	set    cookies // what its response does to the cookies, until it comes or is lost
}

// forget clears the fields that are not needed after the commit.
func (q *request) forget() {
	q.had = q.session != none || q.moved != nobody
	q.came, q.session, q.moved, q.overtaken = nobody, none, nobody, false
}

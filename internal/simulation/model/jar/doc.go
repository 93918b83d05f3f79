// Package jar explores exhaustively what the two cookies of a browser are worth if its requests are under way
// at once, and their responses come in any order, or not at all. It is a third small model beside packages
// model and users.
//
// # The model
//
// One browser makes three or four requests. Each request is sent at any time, with the cookies that the
// browser has then. It opens its session as soon as no other request holds that, and commits it. Then it is
// answered, or its response is lost. A request is a write, a login as one of two users, a logout, a Renew, or
// a Remember. A write may be a navigation; all other requests are in the background, since a navigation is
// refused less often.
//
// With -all, two things may happen beside the requests, once each: ann's sessions are ended elsewhere; and a
// minute passes, in which no handler runs. From one start, some of the requests are an attacker's, who has
// planted a guest's cookie in the browser and keeps a copy.
//
// A session is a guest's until Login or Renew, and then a member's. The two have separate cookies. A session
// is one ID: if it gets another ID, the model has two sessions, and the first one has moved to the second.
//
// The server is not the library. It is a few hundred lines (open.go, commit.go, login.go) that follow promise
// P4. [Random] draws a course with what the server does, for a test that compares the two.
//
// # What is checked
//
// When all requests are over (check.go, undone.go):
//
//   - A visitor whose login was answered is logged in.
//   - The next write is not refused, the next page is shown, and RefuseLogin lets the visitor in.
//   - A write that was answered is in the session that is logged in.
//   - A visitor who has logged out is out. A visitor after whom another has logged in is not seen any more.
//   - No browser has a session of a user who has not logged in there.
//
// An outcome is what is left then: the sessions, the cookies, and what each request was told. Most outcomes
// break no rule. Some do, if a logout, Renew or Remember is under way beside a login, or if a response is
// lost. The table of the test (table_test.go) has the exact number of these, so that a change of the rules
// shows what it costs. There is no number for what never happens, in no order and with no loss: writes undo no
// login, no navigation is refused, and nobody has a stranger's session.
//
// rules.go has the rules that a test can break one by one. For each there is a violation that it prevents.
//
// # How many states
//
// go test visits 580 thousand states. With -all it visits 114 million, in one to two minutes and with
// 700 MB, without the race detector. -courses tells the shortest course to each violation.
//
// # What it does not cover
//
// Reads. Requests in other modes than Exclusive, handlers that make two calls, or that fail. Several writes of
// the same key: which one wins if the content of two sessions goes along with a login. Two devices of a user,
// except that one other session may be there at first. Timeouts of the session, Redis and the network between:
// for these see packages model and simulation. A browser that refuses cookies, or two of its tabs that differ.
package jar

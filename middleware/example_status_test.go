package middleware_test

import (
	"fmt"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A handler that calls Sessions.End, List, Update or session.Start answers with the right status if that fails.
func ExampleStatus() {
	for _, err := range []error{
		store.ErrTimeout,         // another request has held the session for LockWait
		store.ErrUnavailable,     // Redis is unavailable
		session.ErrEnded,         // the session has ended meanwhile
		store.ErrNotFound,        // there is no such session
		store.ErrTooManySessions, // the user has too many sessions
		session.ErrClosed,        // a mistake in the program
	} {
		fmt.Println(middleware.Status(err), err)
	}
	// Output:
	// 503 lock is still held by another holder
	// 503 redis is unavailable
	// 409 the session has ended
	// 404 no such session
	// 403 the user has too many sessions
	// 500 the session was saved already: change it before
}

package session

import "errors"

// ErrEnded is the cause of a handler's context once its session has ended: [context.Cause] returns it. Whatever has
// ended the session, in whichever process, the context ends within two seconds: see package middleware.
var ErrEnded = errors.New("the session has ended")

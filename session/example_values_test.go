package session_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/session"
)

func ExampleSession_Set() {
	var s session.Session // in a handler: s := session.FromContext(r.Context())

	type Item struct {
		Name  string
		Count int
		Added time.Time
	}
	cart := []Item{{"tea", 2, time.Date(2026, 7, 1, 8, 0, 0, 1, time.UTC)}}
	s.Set("cart", cart)
	cart[0].Count = 99 // too late: Set has encoded the cart

	stored, _ := session.Get[[]Item](&s, "cart")
	fmt.Println(stored)
	// Output:
	// [{tea 2 2026-07-01 08:00:00.000000001 +0000 UTC}]
}

// Set has no error to be checked. A value that cannot be stored fails the commit: the response is an error, and
// nothing is saved.
func ExampleSession_Set_error() {
	var s session.Session
	s.Set("visits", 1)
	s.Set("callback", func() {})
	fmt.Println(s.Commit(context.Background()))
	// Output:
	// session: Set("callback"): json: unsupported type: func()
}

// Decode distinguishes an absent value from a value of another type, which Get does not.
func ExampleSession_Decode() {
	var s session.Session
	s.Set("visits", "three")

	var visits int
	err := s.Decode("visits", &visits)
	fmt.Println(errors.Is(err, session.ErrAbsent), errors.Is(err, session.ErrType))

	s.Delete("visits")
	err = s.Decode("visits", &visits)
	fmt.Println(errors.Is(err, session.ErrAbsent), errors.Is(err, session.ErrType))
	// Output:
	// false true
	// true false
}

func ExampleSession_Keys() {
	var s session.Session
	s.Set("theme", "dark")
	s.Set("cart", []string{"tea"})
	s.Set("draft", "Dear")
	for key := range s.Keys() {
		fmt.Println(key)
	}

	s.Delete("draft")
	fmt.Println(s.Len())
	s.Clear()
	fmt.Println(s.Len())
	// Output:
	// cart
	// draft
	// theme
	// 2
	// 0
}

package session_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/session"
)

func ExampleGet() {
	var s session.Session // in a handler: s := session.FromContext(r.Context())

	visits, _ := session.Get[int](&s, "visits") // 0 if there is none yet
	s.Set("visits", visits+1)

	s.Set("cart", []string{"tea", "milk"})
	cart, ok := session.Get[[]string](&s, "cart")
	cart[0] = "coffee" // a copy: Set it to keep it
	fmt.Println(cart, ok)

	cart, ok = session.Get[[]string](&s, "cart")
	fmt.Println(cart, ok)

	_, ok = session.Get[int](&s, "cart")
	fmt.Println(ok)
	// Output:
	// [coffee milk] true
	// [tea milk] true
	// false
}

func ExamplePop() {
	var s session.Session
	s.Set("flash", "Your order is on its way.")

	fmt.Println(session.Pop[string](&s, "flash"))
	fmt.Println(session.Pop[string](&s, "flash"))
	// Output:
	// Your order is on its way. true
	//  false
}

// A handler is tested without a store: it gets a zero Session, which the test fills before and reads
// afterwards. Commit says whether every Set has succeeded.
func ExampleNewContext() {
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Login(r.FormValue("user"))
		s.Set("greeted", true)
		fmt.Fprint(w, "welcome")
	})

	var s session.Session
	s.Set("cart", []string{"tea"})
	r := httptest.NewRequest(http.MethodPost, "/login?user=ada", nil)
	r = r.WithContext(session.NewContext(r.Context(), &s))
	w := httptest.NewRecorder()
	login.ServeHTTP(w, r)

	fmt.Println(w.Body, s.User())
	fmt.Println(session.Get[[]string](&s, "cart"))
	fmt.Println(session.Get[bool](&s, "greeted"))
	fmt.Println(s.Commit(r.Context()))
	// Output:
	// welcome ada
	// [tea] true
	// true true
	// <nil>
}

package session_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/a2139e8d/latchkey/session"
)

// A transfer either happens as a whole or not at all. Discard is deferred, and does nothing after a Commit.
func ExampleSession_Discard() {
	transfer := func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		defer s.Discard()
		amount, _ := strconv.Atoi(r.FormValue("amount"))
		purse, _ := session.Get[int](s, "purse")
		s.Set("purse", purse-amount)
		bank, _ := session.Get[int](s, "bank")
		s.Set("bank", bank+amount)
		if purse < amount {
			http.Error(w, "there is not enough in the purse", http.StatusBadRequest)
			return
		}
		_ = s.Commit(r.Context()) // an error becomes the response
	}

	for _, amount := range []string{"700", "70"} {
		var s session.Session // a handler's test needs no store
		s.Set("purse", 100)
		r := httptest.NewRequest(http.MethodPost, "/transfer?amount="+amount, nil)
		w := httptest.NewRecorder()
		transfer(w, r.WithContext(session.NewContext(r.Context(), &s)))
		purse, _ := session.Get[int](&s, "purse")
		bank, _ := session.Get[int](&s, "bank")
		fmt.Println(w.Code, "purse", purse, "bank", bank)
	}
	// Output:
	// 400 purse 100 bank 0
	// 200 purse 30 bank 70
}

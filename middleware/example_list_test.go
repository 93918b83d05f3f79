package middleware_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A user looks at where they are logged in.
func ExampleSessions_List() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{key},
		Device: func(r *http.Request) string { return r.FormValue("on") }, // usually made of r.UserAgent()
	})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("GET /devices", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		list, err := sessions.List(r.Context(), s.User())
		if err != nil {
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		slices.SortFunc(list, func(a, b middleware.Info) int { return strings.Compare(a.Device, b.Device) })
		for _, info := range list {
			fmt.Fprintln(w, info.Device, "expires in", time.Until(info.Expires).Round(time.Minute),
				"this device:", info.ID == s.ID())
		}
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	newBrowser := func() *http.Client {
		jar, _ := cookiejar.New(nil)
		return &http.Client{Transport: server.Client().Transport, Jar: jar}
	}
	show := func(res *http.Response, err error) {
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		io.Copy(os.Stdout, res.Body)
	}

	laptop, phone := newBrowser(), newBrowser()
	show(laptop.Post(server.URL+"/login?on=laptop", "", nil))
	show(phone.Post(server.URL+"/login?on=phone", "", nil))
	show(phone.Get(server.URL + "/devices"))
	// Output:
	// laptop expires in 30m0s this device: false
	// phone expires in 30m0s this device: true
}

package main // It needs REDIS_URL, SESSION_KEY and ADDR in the environment.

import (
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/labstack/echo/v4"
)

func main() {
	st, err := store.Open(os.Getenv("REDIS_URL"), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{[]byte(os.Getenv("SESSION_KEY"))}, Mode: middleware.ByMethod,
		Cookie: http.Cookie{Name: "session"}, // for plain HTTP; drop this line behind HTTPS
	})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.POST("/login", func(c echo.Context) error {
		session.FromContext(c.Request().Context()).Login(c.FormValue("user"))
		return c.Redirect(http.StatusSeeOther, "/")
	})
	e.GET("/", func(c echo.Context) error {
		s := session.FromContext(c.Request().Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		return c.String(http.StatusOK, fmt.Sprintln(s.User(), visits+1))
	})
	e.POST("/panic", func(c echo.Context) error {
		session.FromContext(c.Request().Context()).Set("visits", -1)
		panic("nothing of this request is saved")
	})
	handler := middleware.Recoverer(http.NewCrossOriginProtection().Handler(sessions.Handler(e)))
	log.Fatal(http.ListenAndServe(os.Getenv("ADDR"), handler))
}

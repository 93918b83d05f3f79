package main // It needs REDIS_URL, SESSION_KEY and ADDR in the environment.

import (
	"log"
	"net/http"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gin-gonic/gin"
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
	r := gin.New() // gin.Default would add a Recovery inside the sessions
	r.POST("/login", func(c *gin.Context) {
		session.FromContext(c.Request.Context()).Login(c.PostForm("user")) // c itself is a different context
		c.Redirect(http.StatusSeeOther, "/")
	})
	r.GET("/", func(c *gin.Context) {
		s := session.FromContext(c.Request.Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		c.String(http.StatusOK, "%s %d\n", s.User(), visits+1)
	})
	r.POST("/panic", func(c *gin.Context) {
		session.FromContext(c.Request.Context()).Set("visits", -1)
		panic("nothing of this request is saved")
	})
	handler := middleware.Recoverer(http.NewCrossOriginProtection().Handler(sessions.Handler(r)))
	log.Fatal(http.ListenAndServe(os.Getenv("ADDR"), handler))
}

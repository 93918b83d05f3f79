package frameworks

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gin-gonic/gin"
)

func init() { gin.SetMode(gin.ReleaseMode) } // by default gin prints every route

func (s *shop) gin(first ...gin.HandlerFunc) *gin.Engine {
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(first...)
	r.GET("/", func(c *gin.Context) {
		c.String(http.StatusOK, "%s", greeting(session.FromContext(c.Request.Context())))
	})
	r.POST("/login", func(c *gin.Context) {
		login(session.FromContext(c.Request.Context()), c.PostForm("user"))
		c.Redirect(http.StatusSeeOther, "/")
	})
	r.POST("/logout", func(c *gin.Context) {
		session.FromContext(c.Request.Context()).Destroy()
		c.Redirect(http.StatusSeeOther, "/")
	})
	r.POST("/add", func(c *gin.Context) {
		c.JSON(http.StatusOK, add(session.FromContext(c.Request.Context()), 1))
	})
	r.GET("/cart", func(c *gin.Context) {
		c.JSON(http.StatusOK, inCart(session.FromContext(c.Request.Context())))
	})
	account := r.Group("/account", func(c *gin.Context) {
		user, ok := session.Get[string](session.FromContext(c.Request.Context()), "user")
		if !ok {
			c.String(http.StatusUnauthorized, "log in first")
			c.Abort()
		}
		c.Set("user", user)
	})
	account.GET("/", func(c *gin.Context) {
		c.String(http.StatusOK, "the account of %s", c.GetString("user"))
	})
	r.GET("/shop/:item", func(c *gin.Context) { c.JSON(http.StatusOK, s.page(c.Request, c.Param("item"))) })
	r.GET("/events", func(c *gin.Context) {
		n := add(session.FromContext(c.Request.Context()), 1)
		c.Stream(func(io.Writer) bool {
			if n > 0 {
				c.SSEvent("", strconv.Itoa(n))
				n = 0
				return true
			}
			select {
			case <-s.more:
				c.SSEvent("", "more")
			case <-c.Request.Context().Done():
			}
			return false
		})
	})
	r.GET("/ws", gin.WrapF(s.websocket))
	r.POST("/fail", func(c *gin.Context) {
		add(session.FromContext(c.Request.Context()), 100)
		c.AbortWithStatusJSON(http.StatusTeapot, "a teapot")
	})
	for path, h := range s.wrong() {
		r.POST(path, gin.WrapF(h))
	}
	return r
}

// If the sessions are a middleware of gin, by the usual adapter, the response bypasses them, so no cookie is set.
// The guide says so.
func TestGinsOwnMiddlewareCannotBeTheSessions(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return new(shop).gin(func(c *gin.Context) {
			sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				c.Request = r
				c.Next()
			})).ServeHTTP(c.Writer, c.Request)
		})
	})
	v := newVisitor(t, s)
	for range 2 {
		if a := v.post("/add"); a.body != "1" || a.sets() {
			t.Errorf("%q %v: does it work now?", a.body, a.Header)
		}
	}
}

// A gin context has no session, unless gin is configured to use the request's context. The handler panics at the
// first use of the session, with a helpful text.
func TestGinsContextIsNotTheRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		r := gin.New()
		r.Use(func(c *gin.Context) {
			defer func() { c.String(http.StatusOK, "%v", recover()) }()
			c.Next()
		})
		r.GET("/", func(c *gin.Context) { session.FromContext(c) })
		return sessions.Handler(r)
	})
	if a := newVisitor(t, s).get("/"); !strings.Contains(a.body, "session") {
		t.Errorf("the panic says %q", a.body)
	}
}

package frameworks

import (
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/gin-gonic/gin"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/klauspost/compress/gzhttp"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

// A program is a shop with sessions around it, and what else belongs there.
type program struct {
	name string
	of   func(*shop, *middleware.Sessions) http.Handler
}

// programs are all the ways that work. The README recommends recoverer, sessions, framework.
var programs = []program{
	{"echo's middleware", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.echo(echomiddleware.Recover(), echo.WrapMiddleware(sessions.Handler))
	}},
	{"echo's middleware, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.echo(echomiddleware.Gzip(), echomiddleware.Recover(), echo.WrapMiddleware(sessions.Handler))
	}},
	{"chi", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(chimiddleware.Recoverer, sessions.Handler)
	}},
	{"chi, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(chimiddleware.Compress(5), chimiddleware.Recoverer, sessions.Handler)
	}},
	{"chi, compressed inside", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(chimiddleware.Recoverer, sessions.Handler, chimiddleware.Compress(5))
	}},
	{"gin", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return recoverer(sessions.Handler(s.gin()))
	}},
	{"gin, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return gzip(recoverer(sessions.Handler(s.gin())))
	}},
	{"echo", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return recoverer(sessions.Handler(s.echo()))
	}},
	{"echo, compressed", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return gzip(recoverer(sessions.Handler(s.echo())))
	}},
}

// recoveringInside are the ways that do not work: the panic never reaches the sessions.
var recoveringInside = []program{
	{"chi", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return s.chi(sessions.Handler, chimiddleware.Recoverer)
	}},
	{"gin", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return sessions.Handler(s.gin(gin.RecoveryWithWriter(nil)))
	}},
	{"echo", func(s *shop, sessions *middleware.Sessions) http.Handler {
		return sessions.Handler(s.echo(echomiddleware.Recover()))
	}},
}

func gzip(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(0))
	if err != nil {
		panic(err)
	}
	return wrap(next)
}

// each runs a test with every program, in parallel.
func each(t *testing.T, of []program, f func(t *testing.T, s *site, shop *shop)) {
	t.Parallel()
	for _, p := range of {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			shop := &shop{more: make(chan struct{})}
			f(t, newSite(t, middleware.Options{Mode: modes}, func(sessions *middleware.Sessions) http.Handler {
				shop.sessions = sessions
				return p.of(shop, sessions)
			}), shop)
		})
	}
}

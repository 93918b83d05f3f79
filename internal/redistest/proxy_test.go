package redistest_test

import (
	"reflect"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// through runs f against both servers, with a connection through a proxy.
func through(t *testing.T, f func(t *testing.T, s *redistest.Server, p *redistest.Proxy, c redis.Conn)) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c := p.Pool(t, 1).Get()
		defer c.Close()
		f(t, s, p, c)
	})
}

func TestProxyRecords(t *testing.T) {
	through(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, c redis.Conn) {
		if got, err := redis.String(c.Do("set", "k", "line\r\nend")); got != "OK" || err != nil {
			t.Fatalf("SET: %q, %v", got, err)
		}
		if got, err := redis.String(c.Do("GET", "k")); got != "line\r\nend" || err != nil {
			t.Errorf("GET: %q, %v", got, err)
		}
		want := []redistest.Command{
			{Name: "SET", Args: []string{"k", "line\r\nend"}},
			{Name: "GET", Args: []string{"k"}},
		}
		if got := p.Commands(); !reflect.DeepEqual(got, want) {
			t.Errorf("Commands() = %q, want %q", got, want)
		}
		if got := p.Requests(); got != 2 {
			t.Errorf("Requests() = %d, want 2", got)
		}
		p.Forget()
		if got := p.Requests(); got != 0 {
			t.Errorf("Requests() after Forget = %d", got)
		}
	})
}

package frameworks

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// An nginx is a caching proxy in front of a site. It keeps every answer that it may keep for
// ten minutes, and says in X-Cache what it did.
type nginx struct{ socket string }

// The process is a single one, without a master and workers, so that killing it leaves nothing.
const configuration = `
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr warn;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	proxy_cache_path %[1]s/cache keys_zone=pages:1m;
	server {
		listen unix:%[1]s/socket;
		location / {
			proxy_pass %[2]s;
			proxy_http_version 1.1;
			proxy_cache pages;
			proxy_cache_valid any 10m;
			%[3]s
			add_header X-Cache $upstream_cache_status always;
		}
	}
}
`

// newNginx starts an nginx in front of s, with more lines of configuration.
func newNginx(t *testing.T, s *site, more string) *nginx {
	t.Helper()
	dir, err := os.MkdirTemp("", "nginx") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, dir, s.URL, more), 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := subprocess.Start(exec.Command(nginxBinary(t), "-p", dir, "-c", file, "-e", "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	p.EndWith(t)
	n := &nginx{socket: filepath.Join(dir, "socket")}
	n.waitReady(t, p)
	return n
}

func (n *nginx) waitReady(t *testing.T, p *subprocess.Process) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		select {
		case <-p.Done():
			t.Fatalf("nginx ended at once:\n%s", p.Log())
		case <-time.After(5 * time.Millisecond):
		}
		if c, err := net.Dial("unix", n.socket); err == nil {
			c.Close()
			return
		}
	}
	t.Fatalf("nginx does not answer:\n%s", p.Log())
}

// nginxBinary returns the path of nginx, which is not in every user's PATH. A test without
// nginx fails: one that is skipped would look like one that passed.
func nginxBinary(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("NGINX"), "nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("found no nginx: install it (`make test` does), or name the binary in NGINX")
	return ""
}

// visitor returns a browser that reaches the site through nginx, and accepts gzip.
func (n *nginx) visitor(t *testing.T) *visitor {
	t.Helper()
	return newVisitorBy(t, "http://nginx.test", &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", n.socket)
		},
	})
}

package frameworks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// configuration makes nginx a caching proxy in front of a site. It keeps every response that it may keep
// for ten minutes, and says in X-Cache what it did. It is a single process, without a master and workers,
// so that killing it leaves nothing behind.
const configuration = `
daemon off;
master_process off;
pid "%[1]s/pid";
error_log stderr warn;
events {}
http {
	access_log off;
	client_body_temp_path "%[1]s/body";
	proxy_temp_path "%[1]s/proxy";
	fastcgi_temp_path "%[1]s/fastcgi";
	uwsgi_temp_path "%[1]s/uwsgi";
	scgi_temp_path "%[1]s/scgi";
	proxy_cache_path "%[1]s/cache" keys_zone=pages:1m;
	server {
		listen "unix:%[1]s/socket";
		location / {
			proxy_pass %[2]s;
			proxy_http_version 1.1;
			proxy_cache pages;
			proxy_cache_valid any 10m;
			add_header X-Cache $upstream_cache_status always;
		}
		location /visit {
			proxy_pass %[2]s;
			proxy_cache pages;
			proxy_cache_valid any 10m;
			proxy_ignore_headers Set-Cookie;
		}
	}
}
`

// behindNginx starts an nginx in front of s. It returns a function that makes a browser, which uses the nginx and
// accepts gzip. If no nginx is installed, the test is skipped.
func behindNginx(t *testing.T, s *site) (newVisitor func() *visitor) {
	t.Helper()
	binary, err := nginxBinary()
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "nginx") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, dir, s.URL), 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := subprocess.Start(exec.Command(binary, "-p", dir, "-c", file, "-e", "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	p.EndWith(t)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "socket"))
	}
	if err := p.Await(func() bool {
		c, err := dial(t.Context(), "", "")
		if err == nil {
			c.Close()
		}
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return func() *visitor { return newVisitorBy(t, "http://nginx.test", &http.Transport{DialContext: dial}) }
}

// nginxBinary returns the path of nginx, which is not in every user's PATH.
func nginxBinary() (string, error) {
	for _, name := range []string{os.Getenv("NGINX"), "nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("found no nginx: all tests behind a cache were skipped; `make modules` installs it, and NGINX may name one")
}

// Tests behind nginx are skipped if it is not installed. This test fails then, so that the skips are noticed.
func TestNginxIsInstalled(t *testing.T) {
	if _, err := nginxBinary(); err != nil {
		t.Fatal(err)
	}
}

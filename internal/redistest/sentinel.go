package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/subprocess"
	"github.com/gomodule/redigo/redis"
)

// MasterName is what sentinels call their master.
const MasterName = "sessions"

// Sentinel starts a sentinel that watches a master, and returns its host:port. A failover needs the votes
// of quorum sentinels. The sentinel ends with the test.
func Sentinel(tb testing.TB, master *Server, quorum int) string {
	tb.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	for range 5 { // a port may be in use: try others
		own := firstPort + rand.IntN(ports)
		addr := fmt.Sprintf("127.0.0.1:%d", own)
		reservation, err := net.ListenPacket("udp", addr) // as for a Server
		if err != nil {
			continue
		}
		tb.Cleanup(func() { reservation.Close() })
		file := filepath.Join(tb.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("bind 127.0.0.1\nport %[1]d\ndir %[2]q\nsentinel monitor %[3]s %[4]s %[5]s %[6]d\n"+
			"sentinel down-after-milliseconds %[3]s 60000\nsentinel failover-timeout %[3]s 1500\n",
			own, filepath.Dir(file), MasterName, host, port, quorum)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatalf("redistest: %v", err)
		}
		p, err := subprocess.Start(exec.Command(Binary(tb), file, "--sentinel"))
		if err != nil {
			tb.Fatalf("redistest: %v", err)
		}
		p.EndWith(tb)
		if err := p.Await(func() bool {
			master, err := AskSentinel(addr, "SENTINEL", "MASTER", MasterName)
			return err == nil && master != nil
		}); err == nil {
			return addr
		}
	}
	tb.Fatal("redistest: no sentinel could be started")
	return ""
}

// AskSentinel sends a command over a new connection.
func AskSentinel(addr, command string, args ...any) (any, error) {
	const timeout = 5 * time.Second // the machine may be busy
	conn, err := redis.Dial("tcp", addr, redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(command, args...)
}

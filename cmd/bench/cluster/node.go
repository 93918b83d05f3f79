package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A node is a redis-server process that was started for this run, and keeps nothing on disk.
type node struct {
	addr    string
	version string
	admin   redis.Conn
	cmd     *exec.Cmd
	dir     string
}

// startNodes starts the masters of a cluster, each with an equal share of the slots. If masters is 0, it
// starts one server that is not a cluster.
func startNodes(ctx context.Context, masters int) (nodes []*node, err error) {
	for i := range max(masters, 1) {
		n, err := startNode(ctx, masters > 0)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
		if masters == 0 {
			return nodes, nil
		}
		const slots = 16384
		host, port, _ := net.SplitHostPort(nodes[0].addr)
		for _, command := range [][]any{
			{"ADDSLOTSRANGE", i * slots / masters, (i+1)*slots/masters - 1},
			{"SET-CONFIG-EPOCH", i + 1},
			{"MEET", host, port, nodes[0].bus()},
		} {
			if _, err := n.admin.Do("CLUSTER", command...); err != nil {
				return nodes, err
			}
		}
	}
	for _, n := range nodes {
		for {
			info, err := redis.String(n.admin.Do("CLUSTER", "INFO"))
			if err != nil {
				return nodes, err
			}
			if strings.Contains(info, "cluster_state:ok") {
				break
			}
			select {
			case <-ctx.Done():
				return nodes, context.Cause(ctx)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nodes, nil
}

func startNode(ctx context.Context, cluster bool) (_ *node, err error) {
	binary := os.Getenv("REDIS_SERVER")
	if binary == "" {
		binary = "redis-server"
	}
	n := &node{}
	if n.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if n.dir, err = os.MkdirTemp("", "latchkey-cluster"); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(n.addr)
	args := []string{"--bind", host, "--port", port, "--dir", n.dir, "--save", "", "--appendonly", "no"}
	if cluster {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", n.bus())
	}
	n.cmd = exec.CommandContext(ctx, binary, args...)
	if err := n.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.dir))
	}
	defer func() {
		if err != nil { // the caller does not get the node, so it could not close it
			err = errors.Join(err, n.close())
		}
	}()
	for range 500 {
		if n.admin, err = redis.Dial("tcp", n.addr); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not reply: %w", binary, err)
	}
	info, err := n.info("server")
	n.version = "Redis " + info["redis_version"]
	if valkey := info["valkey_version"]; valkey != "" {
		n.version = "Valkey " + valkey
	}
	return n, err
}

// freeAddr returns an address below the ports that the kernel assigns. The port for other nodes is free, too.
func freeAddr() (string, error) {
	var err error
	for range 20 {
		n := node{addr: fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(6000))}
		var free bool
		if free, err = isFree(n.addr, "127.0.0.1:"+n.bus()); free {
			return n.addr, nil
		}
	}
	return "", fmt.Errorf("looking for a free port: %w", err)
}

func isFree(addrs ...string) (bool, error) {
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return false, err
		}
		if err := l.Close(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// bus returns the port for other nodes. Redis's default, the port plus 10000, may exceed the largest port.
func (n *node) bus() string {
	_, port, _ := net.SplitHostPort(n.addr)
	number, _ := strconv.Atoi(port)
	return strconv.Itoa(number + 6000)
}

func (n *node) close() error {
	if n.admin != nil {
		_ = n.admin.Close() // there is nothing left to send
	}
	_ = n.cmd.Process.Kill() // if it fails, the process has ended already, which is as good
	_ = n.cmd.Wait()         // says that it was killed
	return os.RemoveAll(n.dir)
}

// A cost is what a node has spent since its start.
type cost struct{ cpu, reads, clients float64 }

func (n *node) cost() (cost, error) {
	info, err := n.info("cpu", "stats", "clients")
	if err != nil {
		return cost{}, err
	}
	number := func(field string) float64 {
		f, parseErr := strconv.ParseFloat(info[field], 64)
		if parseErr != nil {
			err = fmt.Errorf("INFO of %s: %s: %w", n.addr, field, parseErr)
		}
		return f
	}
	c := cost{number("used_cpu_user") + number("used_cpu_sys"), number("total_reads_processed"), number("connected_clients")}
	return c, err
}

func (n *node) info(sections ...any) (map[string]string, error) {
	text, err := redis.String(n.admin.Do("INFO", sections...))
	fields := make(map[string]string)
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cost is what requests take from the machine. On a machine that others use,
// too, it is steadier than any time: who else runs does not change it much.
type cost struct {
	process  time.Duration  // CPU time of servers and clients
	redis    time.Duration  // CPU time of Redis
	commands map[string]int // what Redis did, also when told to by scripts
}

// costs returns what was spent since the start.
func costs(ctx context.Context, s *redisServer) (cost, error) {
	c := cost{commands: make(map[string]int)}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return c, fmt.Errorf("getrusage: %w", err)
	}
	c.process = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	info, err := s.admin.InfoMap(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return c, fmt.Errorf("asking Redis for its costs: %w", err)
	}
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			return c, fmt.Errorf("asking Redis for its costs: %s: %w", field, err)
		}
		c.redis += time.Duration(seconds * float64(time.Second))
	}
	for name, stat := range info["Commandstats"] {
		name = strings.TrimPrefix(name, "cmdstat_")
		switch command, _, _ := strings.Cut(name, "|"); command {
		case "info", "hello", "client", "ping": // this program, and new connections
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
		if c.commands[name], err = strconv.Atoi(calls); err != nil {
			return c, fmt.Errorf("asking Redis for its costs: %s: %w", name, err)
		}
	}
	return c, nil
}

// add adds what was spent between two looks.
func (c *cost) add(before, after cost) {
	c.process += after.process - before.process
	c.redis += after.redis - before.redis
	if c.commands == nil {
		c.commands = make(map[string]int)
	}
	for name, calls := range after.commands {
		c.commands[name] += calls - before.commands[name]
	}
}

func (c cost) total() int {
	sum := 0
	for _, calls := range c.commands {
		sum += calls
	}
	return sum
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A cost is what requests take from the machine. On a machine that others use,
// too, it is steadier than any time: who else runs does not change it much.
type cost struct {
	redis    time.Duration  // CPU time of Redis
	reads    int            // how often Redis has read from a connection
	commands map[string]int // what Redis did, also when told to by scripts
}

// costs returns what Redis has spent since its start.
func costs(ctx context.Context, s *redisServer) (cost, error) {
	c := cost{commands: make(map[string]int)}
	info, err := s.admin.InfoMap(ctx, "cpu", "stats", "commandstats").Result()
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
	if c.reads, err = strconv.Atoi(info["Stats"]["total_reads_processed"]); err != nil {
		return c, fmt.Errorf("asking Redis for its costs: %w", err)
	}
	for name, stat := range info["Commandstats"] {
		name = strings.TrimPrefix(name, "cmdstat_")
		switch command, _, _ := strings.Cut(name, "|"); command {
		case "info", "hello", "client": // this program, and new connections
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
		if c.commands[name], err = strconv.Atoi(calls); err != nil {
			return c, fmt.Errorf("asking Redis for its costs: %s: %w", name, err)
		}
	}
	return c, nil
}

// since returns what was spent after an earlier look.
func (c cost) since(before cost) cost {
	spent := cost{
		redis:    c.redis - before.redis,
		reads:    c.reads - before.reads - 1, // the one that brought this look
		commands: make(map[string]int),
	}
	for name, calls := range c.commands {
		spent.commands[name] = calls - before.commands[name]
	}
	return spent
}

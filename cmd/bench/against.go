package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// fresh is the number of rounds after which the processes are restarted, if they are.
const fresh = 3

// build builds this program with the Latchkey in another directory. It returns the program as a contender,
// and a function that removes the program. It works in a copy of go.mod, so neither tree is changed.
func build(ctx context.Context, tree string) (c contender, remove func(), err error) {
	tree, err = filepath.Abs(tree)
	if err != nil {
		return c, nil, err
	}
	dir, err := os.MkdirTemp("", "latchkey-bench-other")
	if err != nil {
		return c, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // in the temporary directory
	for _, name := range []string{"go.mod", "go.sum"} {
		if err == nil {
			err = copyFile(filepath.Join(dir, name), name)
		}
	}
	mod := filepath.Join(dir, "go.mod")
	binary := filepath.Join(dir, "bench")
	const latchkey, adapter = "github.com/a2139e8d/latchkey", "store/rueidisstore"
	ours, wrong := filepath.Abs(filepath.Join("../..", adapter))
	err = cmp.Or(err, wrong)
	if err == nil {
		err = command(ctx, "go", "mod", "edit", "-replace", latchkey+"="+tree, "-replace", latchkey+"/"+adapter+"="+ours, mod)
	}
	if err == nil { // -mod=mod: the other tree may want other versions
		err = command(ctx, "go", "build", "-mod=mod", "-tags=older", "-modfile", mod, "-o", binary, ".")
	}
	if err != nil {
		remove()
		return c, nil, fmt.Errorf("building with %s: %w", tree, err)
	}
	for _, p := range app.Peers() {
		if p.Name == app.Latchkey {
			p.Title = "the other tree"
			c = contender{Peer: p, binary: binary}
		}
	}
	return c, remove, nil
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("%w: run the bench in its own directory", err)
	}
	return os.WriteFile(to, text, 0o600)
}

func command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "GOWORK=off") // the workspace would take this tree
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w:\n%s", name, args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// comparison returns the ratios of the two trees, as Markdown. A worse ratio is bold, unless the difference
// may be chance.
func comparison(results []*result) string {
	figures := []figure{throughput, middle, tail, appCPU, redisCPU, mallocs, roundTrips}
	head := []string{"new ÷ old"}
	for _, f := range figures {
		name, _, _ := strings.Cut(f.name, ",") // a ratio has no unit
		head = append(head, name)
	}
	rows := [][]string{head}
	for _, r := range results {
		row := []string{r.cell.String()}
		for _, f := range figures {
			all := ratios(r.peers[0], r.peers[1], f)
			if len(all) == 0 || !r.has(f) {
				row = append(row, "–")
				continue
			}
			low, high := likely(all)
			text := fmt.Sprintf("%.2f (%.2f–%.2f)", median(all), low, high)
			if f.name == throughput.name && high < 0.995 || f.name != throughput.name && low >= 1.005 {
				text = "**" + text + "**"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}

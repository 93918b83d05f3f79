// Package way checks the maps of the way of one request, at the top of packages middleware and records,
// against what really happens: each function that a map names is called, in the file and the order that the
// map says, and within the function above it that is less indented.
//
// For that, a program that makes a request ([request]) is built with every function of the library saying
// that it begins and ends ([trace]).
package way

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/a2139e8d/latchkey/internal/overlay"
	"github.com/a2139e8d/latchkey/internal/way/trace"
)

// packages are those of the library that a request passes through.
var packages = []string{"middleware", "session", "store", "locker", "locker/transport", "internal/records", "internal/lease",
	"internal/scripting", "internal/secret", "internal/excerpt", "internal/keep", "internal/values"}

// build builds the program that traces a request, in dir, and returns its path.
func build(dir string) (string, error) {
	var edits []overlay.Edit
	for _, p := range packages {
		edits = append(edits,
			overlay.BeginAll(p, func(file, function string) string {
				return fmt.Sprintf("defer traceEnter(%q, %q)()", file, function)
			}),
			overlay.Append(p+"/trace_enter.go", fmt.Sprintf(
				"package %s\n\nimport \"github.com/a2139e8d/latchkey/internal/way/trace\"\n\nvar traceEnter = trace.Enter\n", filepath.Base(p))))
	}
	list, err := overlay.Write(dir, edits)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "request")
	cmd := exec.Command("go", "build", "-o", path, "-overlay", list, "./request")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

// traceOf returns the calls that a request of a kind makes.
func traceOf(program, url, kind string) (calls []trace.Call, err error) {
	cmd := exec.Command(program, url, kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	err = json.Unmarshal(lines[len(lines)-1], &calls)
	return calls, err
}

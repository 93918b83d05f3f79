// Package trace records which functions are executed, in a build in which each of them calls [Enter].
package trace

import (
	"bytes"
	"runtime"
	"sync"
)

// A Call is one execution of a function.
type Call struct {
	File     string // "internal/records/tenure.go"
	Function string // "tenure.end"
	Depth    int    // how many recorded calls it was made in, of the same goroutine
	Aside    bool   // that goroutine is not the one that called Start
}

var (
	mu    sync.Mutex // guards all below
	on    bool
	first string // the goroutine that called Start
	calls []Call
	depth map[string]int // by goroutine
)

// Start begins a new record.
func Start() {
	mu.Lock()
	defer mu.Unlock()
	on, first, calls, depth = true, goroutine(), nil, make(map[string]int)
}

// Stop ends the record and returns the calls in the order in which they began.
func Stop() []Call {
	mu.Lock()
	defer mu.Unlock()
	on = false
	return calls
}

// Enter records the beginning of a call; what it returns records the end.
func Enter(file, function string) func() {
	mu.Lock()
	defer mu.Unlock()
	if !on {
		return func() {}
	}
	g := goroutine()
	calls = append(calls, Call{file, function, depth[g], g != first})
	depth[g]++
	return func() {
		mu.Lock()
		defer mu.Unlock()
		depth[g]--
	}
}

// goroutine returns a name of the present goroutine.
func goroutine() string {
	var stack [64]byte
	text := stack[:runtime.Stack(stack[:], false)]
	name, _, _ := bytes.Cut(text, []byte(" ["))
	return string(name)
}

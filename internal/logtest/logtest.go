// Package logtest keeps the log of a program, for tests.
package logtest

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// A Buffer is the destination of a log. Any number of goroutines may use it at once.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Logger returns a logger that writes all levels into the buffer, as text.
func (l *Buffer) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Lines returns the lines that contain all these texts.
func (l *Buffer) Lines(texts ...string) []string {
	return slices.DeleteFunc(slices.Collect(strings.Lines(l.String())), func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

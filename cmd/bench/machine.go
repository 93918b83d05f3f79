package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine describes where a run was made, as far as the system tells.
func machine(redisVersion string) string {
	parts := []string{runtime.GOOS + "/" + runtime.GOARCH, fmt.Sprintf("%d CPUs", runtime.NumCPU())}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		parts[1] += " (" + model + ")"
	}
	if kernel := firstLine("/proc/sys/kernel/osrelease"); kernel != "" {
		parts = append(parts, "kernel "+kernel)
	}
	parts = append(parts, runtime.Version(), "Redis "+redisVersion)
	return strings.Join(parts, ", ")
}

// busy tells how busy the machine is: the load average of the last minute.
func busy() string {
	average, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	if average == "" {
		return "unknown"
	}
	return average
}

// field returns what stands behind the first "name :" in a file of the system's.
func field(file, name string) string {
	text, _ := os.ReadFile(file) // where there is none, nothing is told
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file) // where there is none, nothing is told
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// versions lists the libraries that are measured, and those that they use.
func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var all []string
	for _, m := range info.Deps {
		if m.Replace == nil { // Latchkey is as it is here
			all = append(all, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return strings.Join(all, ", ")
}

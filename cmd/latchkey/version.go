package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

const versionHelp = `latchkey version

Prints the version of this program, and the Go it was built with. For a program that was built from a
clone of the repository, it prints the commit.
`

// printVersion prints what the go command has recorded in the program.
func printVersion(out io.Writer) error {
	version := "(unknown)" // of a program that was built without modules
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && version == "(devel)" {
				version = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(out, "latchkey %s, %s, %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

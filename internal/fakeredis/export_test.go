package fakeredis

// These are the parts of the package that only the comparisons with a real Redis need.
const (
	BusyError     = errBusy
	LoadingError  = errLoading
	NoScriptError = errNoScript
)

var SHA1 = sha1hex

// Implemented returns the names of all commands, as Redis knows them.
func Implemented() (names []string) {
	for _, c := range commands {
		if c.run != nil {
			names = append(names, c.name)
		}
	}
	return names
}

// Lookup returns the name of the command that would execute args.
func Lookup(args []string) string {
	if c := lookupCommand(args); c != nil {
		return c.name
	}
	return ""
}

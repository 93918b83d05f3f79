package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
)

// allowed are licences that ask for no more than that their text goes with the program. The tool that finds them
// takes the three clauses of golang.org/x/sys for BSD-Source-Code.
var allowed = regexp.MustCompile(`^(MIT|BSD-[23]-Clause|BSD-Source-Code|Apache-2\.0|ISC|0BSD)$`)

// readBill adds the licences in a bill of materials to found. One that is unknown or not allowed is an error.
func readBill(name string, found map[string]bool) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var bill struct {
		Components []struct {
			Name, Version string
			Evidence      struct {
				Licenses []struct{ License struct{ ID, Name string } }
			}
		}
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range bill.Components {
		ok := c.Name == "std" // Go's own library
		for _, l := range c.Evidence.Licenses {
			if allowed.MatchString(l.License.ID) {
				ok, found[l.License.ID] = true, true
			}
		}
		if !ok {
			return fmt.Errorf("%s %s: no licence that is known and allowed, but %v", c.Name, c.Version, c.Evidence.Licenses)
		}
	}
	return nil
}

package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
)

// NumberHeader is the header with which a test numbers its requests.
const NumberHeader = "Request-Number"

// Told is what an observer was told: one of the three events. Errors are left out, since they have no form in JSON.
type Told struct {
	Number   string // of the request; empty: it belongs to none
	Request  *middleware.RequestEvent
	Exchange *middleware.ExchangeEvent
	Session  *middleware.SessionEvent
}

// ReadTold reads what an application has written: one Told a line.
func ReadTold(path string) (all []Told, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var one Told
		switch err := lines.Decode(&one); err {
		case nil:
			all = append(all, one)
		case io.EOF, io.ErrUnexpectedEOF: // the second if the process was killed while it wrote
			return all, nil
		default:
			return nil, fmt.Errorf("%s, event %d: %w", path, len(all), err)
		}
	}
}

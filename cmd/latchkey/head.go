package main

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"time"
)

// headSize is enough for the part of a record before the session's values.
const headSize = 160

// keyIDBytes is the size of the ID of a key, with which a sealed record goes on: see records.KeyID.
const keyIDBytes = 4

// A head is the part of a stored record before its values, which may be encrypted.
type head struct {
	created time.Time
	gone    bool      // it is a tombstone
	ended   time.Time // when it was ended or renewed; zero if not known
	renewed bool      // the tombstone leads to a new ID
	idle    time.Duration
	until   time.Time // of a session that is remembered
	sealed  bool
	key     string // the ID of the key that it is sealed with
}

var (
	headForm  = regexp.MustCompile(`^\{"v":2,"s":"\w+",(?:"gone":(\d+)(,"(?:to|sealed)":"[^"]*")?\}$|"c":(\d+)(?:,"g":\d+)?(?:,"i":(\d+))?(?:,"u":(\d+))?)`)
	plainForm = regexp.MustCompile(`^(?:,"[a-z]":(?:\d+|"[^"\\]*"))*,"([de])":`)
)

// parseHead reads the beginning of a record. It returns false if this version does not know the format.
func parseHead(text string) (h head, ok bool) {
	found := headForm.FindStringSubmatch(text)
	if found == nil {
		return head{}, false
	}
	h.gone = found[1] != ""
	h.renewed = found[2] != ""
	h.ended, h.created, h.until = milliseconds(found[1]), milliseconds(found[3]), milliseconds(found[5])
	if !h.gone && h.created.IsZero() {
		return head{}, false
	}
	idle, _ := strconv.ParseInt(found[4], 10, 64)
	h.idle = time.Duration(idle) * time.Millisecond
	if data := plainForm.FindStringSubmatch(text[len(found[0]):]); data != nil {
		h.sealed = data[1] == "e"
		if rest := text[len(found[0])+len(data[0]):]; h.sealed && len(rest) >= keyIDBytes {
			h.key = hex.EncodeToString([]byte(rest[:keyIDBytes]))
		}
	}
	return h, true
}

// milliseconds returns a Unix time, or the zero time if there is none, or JSON has no such time.
func milliseconds(digits string) time.Time {
	n, err := strconv.ParseInt(digits, 10, 64)
	if t := time.UnixMilli(n).UTC(); err == nil && n != 0 && t.Year() <= 9999 {
		return t
	}
	return time.Time{}
}

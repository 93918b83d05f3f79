package middleware

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strconv"
	"time"
)

// A checker verifies cookies that securecookie has signed: the base64 of "date|secret|signature", in which the
// secret is in base64 once more, and the signature is an HMAC-SHA256 of "name|date|secret". A checker accepts
// exactly the cookies that securecookie accepts, if their base64 is canonical. Nearly every request has a
// cookie, and a checker takes a fifth of the time that securecookie takes, and leaves no garbage but the ID.
//
// One goroutine at a time uses a checker, which keeps nothing of a cookie.
type checker struct {
	prefix [roles][]byte // the name of the cookie of each role, with its separator
	macs   []hash.Hash   // of all keys, newest first
	maxAge int64         // of a signature, in s

	// Room for the contents of a cookie: bytes that are passed to a hash.Hash cannot be on the stack.
	plain, secret [maxValue]byte
	sum           [sha256.Size]byte
}

func newChecker(names [roles]string, keys [][]byte, maxAge int64) *checker {
	k := &checker{maxAge: maxAge}
	for i, name := range names {
		k.prefix[i] = []byte(name + "|")
	}
	for _, key := range keys {
		k.macs = append(k.macs, hmac.New(sha256.New, key))
	}
	return k
}

var strictBase64 = base64.URLEncoding.Strict()

// A verified is the result of verifying a cookie.
type verified uint8

const (
	malformed  verified = iota // not worth verifying
	refused                    // its signature is too old, or it is no cookie of a session
	unknownKey                 // it looks like a session's cookie, but none of our keys has signed it
	genuine
)

// verify returns the public ID that the value of a cookie of that role stands for, or "" if the cookie is not genuine.
func (k *checker) verify(of role, value string) (id string, result verified) {
	if len(value) > maxValue {
		return "", malformed
	}
	defer clear(k.plain[:])
	defer clear(k.secret[:])
	n, err := strictBase64.Decode(k.plain[:], []byte(value))
	// There are other ways to write the same bytes, for example with line breaks. A cookie written in
	// another way was not issued here, so it is not genuine.
	if err != nil || base64.URLEncoding.EncodedLen(n) != len(value) {
		return "", malformed
	}
	known := false
	for _, mac := range k.macs {
		_, text, ok := k.signed(of, mac, k.plain[:n])
		known = known || text != nil
		if !ok {
			continue
		}
		n, err := base64.URLEncoding.Decode(k.secret[:], text)
		if err != nil {
			return "", refused
		}
		return idOfRaw(k.secret[:n]), genuine
	}
	if !known && looksSigned(k.plain[:n]) {
		return "", unknownKey
	}
	return "", refused
}

// looksSigned reports whether plain has the parts of a session's cookie, each of its size.
func looksSigned(plain []byte) bool {
	unix, rest, _ := bytes.Cut(plain, []byte("|"))
	text, signature, _ := bytes.Cut(rest, []byte("|"))
	_, err := strconv.ParseInt(string(unix), 10, 64)
	size := len(text)
	return err == nil && len(signature) == sha256.Size &&
		(size == base64.URLEncoding.EncodedLen(secretSize) || size == base64.URLEncoding.EncodedLen(tagSize+secretSize))
}

// signed returns the date and the secret, in base64, if they were signed with the key of mac; if not, text is nil.
// ok is true if, in addition, the signature is not too old. A signed date comes from one of our servers, so a date in the
// future only means that the clocks of two servers differ.
func (k *checker) signed(of role, mac hash.Hash, plain []byte) (date time.Time, text []byte, ok bool) {
	unix, rest, _ := bytes.Cut(plain, []byte("|"))
	text, signature, found := bytes.Cut(rest, []byte("|"))
	if !found {
		return date, nil, false
	}
	mac.Reset()
	_, _ = mac.Write(k.prefix[of]) // no Hash fails
	_, _ = mac.Write(plain[:len(unix)+len("|")+len(text)])
	if !hmac.Equal(mac.Sum(k.sum[:0]), signature) {
		return date, nil, false
	}
	seconds, err := strconv.ParseInt(string(unix), 10, 64)
	return time.Unix(seconds, 0), text, err == nil && seconds >= time.Now().Unix()-k.maxAge
}

package fakeredis

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the type of a Reply.
type Kind uint8

// The kinds of a Reply.
const (
	KindNil    Kind = iota // no value
	KindSimple             // a simple string, such as OK
	KindError
	KindInt
	KindBulk // a string
	KindArray
)

// Reply is a value of RESP2. The zero Reply is nil.
type Reply struct {
	kind Kind
	n    int64
	text string
	list []Reply
}

// Nil is the null reply.
var Nil = Reply{}

// OK is the reply of many commands.
var OK = Simple("OK")

// Simple returns a simple string.
func Simple(text string) Reply { return Reply{kind: KindSimple, text: text} }

// Err returns an error. Its text begins with a code, such as ERR.
func Err(text string) Reply { return Reply{kind: KindError, text: text} }

// Int returns a number.
func Int(n int64) Reply { return Reply{kind: KindInt, n: n} }

// Bulk returns a string.
func Bulk(text string) Reply { return Reply{kind: KindBulk, text: text} }

// Array returns a list of replies.
func Array(list ...Reply) Reply { return Reply{kind: KindArray, list: list} }

// Kind returns the type.
func (r Reply) Kind() Kind { return r.kind }

// IsError tells whether it is an error.
func (r Reply) IsError() bool { return r.kind == KindError }

// Int returns the number, 0 for another type.
func (r Reply) Int() int64 { return r.n }

// Text returns the string or the text of the error, "" for another type.
func (r Reply) Text() string { return r.text }

// List returns the elements of an array, nil for another type. Callers must not change it.
func (r Reply) List() []Reply { return r.list }

// String shows the reply for a reader: +OK, -ERR syntax error, 7, "text", nil, [1 nil].
func (r Reply) String() string {
	switch r.kind {
	case KindSimple:
		return "+" + r.text
	case KindError:
		return "-" + r.text
	case KindInt:
		return strconv.FormatInt(r.n, 10)
	case KindBulk:
		return strconv.Quote(r.text)
	case KindArray:
		return strings.TrimSuffix(fmt.Sprintln(any(r.list)), "\n")
	default:
		return "nil"
	}
}

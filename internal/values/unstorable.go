package values

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// # Values of which JSON keeps nothing
//
// encoding/json leaves out unexported fields. If a struct has no others, and no method that encodes it, nothing is
// left: errors.New("x") and a sync.Mutex would be stored as {}, without an error. Encode refuses such structs: the
// value itself, what it points to, and the elements of slices, arrays and maps. Only types are looked at, and neither
// the fields of a struct nor the value in an interface, so a type is looked at once.

// checkStorable returns an error if JSON would keep nothing of v, or of its elements.
func checkStorable(v any) error {
	t := reflect.TypeOf(v)
	switch t.Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
	default:
		return nil
	}
	known, found := unstorable.Load(t)
	if !found {
		known, _ = unstorable.LoadOrStore(t, verdict{unstorableBy(t)})
	}
	return known.(verdict).err
}

// unstorable has the verdict on each type that was looked at.
var unstorable sync.Map

type verdict struct{ err error }

// unstorableBy returns the error of a value of type t, or nil.
func unstorableBy(t reflect.Type) error {
	empty, addressable := emptied(t)
	switch {
	case empty == nil:
		return nil
	case !addressable && encodesItself(reflect.PointerTo(empty)):
		return fmt.Errorf("a %v cannot be stored: only a *%v encodes itself: store a pointer", t, empty)
	}
	return fmt.Errorf("a %v cannot be stored: %v has no exported field, and neither MarshalJSON nor MarshalText, "+
		"so JSON would keep nothing of it", t, empty)
}

// emptied returns the struct type in a value of type t of which JSON keeps nothing, or nil. addressable:
// encoding/json also calls the methods that the struct has by a pointer.
func emptied(t reflect.Type) (empty reflect.Type, addressable bool) {
	var seen []reflect.Type // a type may contain itself
	for !slices.Contains(seen, t) && !encodesItself(t) && !(addressable && encodesItself(reflect.PointerTo(t))) {
		seen = append(seen, t)
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			t, addressable = t.Elem(), true
		case reflect.Array:
			t = t.Elem()
		case reflect.Map:
			t, addressable = t.Elem(), false
		case reflect.Struct:
			if t.Size() > 0 && !keepsField(t) { // a struct{} has nothing to lose
				return t, addressable
			}
			return nil, false
		default:
			return nil, false
		}
	}
	return nil, false
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func encodesItself(t reflect.Type) bool {
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler)
}

// keepsField reports whether JSON keeps a field of a struct type. The fields of an embedded struct count as its own,
// unless a tag gives it a name.
func keepsField(t reflect.Type) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if f.Anonymous && embedded.Kind() == reflect.Struct {
			tag := f.Tag.Get("json")
			name, _, _ := strings.Cut(tag, ",")
			return name != "" && tag != "-" // "-" leaves the field out, and "-," names it -
		}
		return f.IsExported()
	})
}

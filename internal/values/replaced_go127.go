//go:build go1.27

package values

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
)

// replaced reports whether the encoder replaced invalid UTF-8. From Go 1.27 on the encoder writes U+FFFD for it, like
// a real U+FFFD. In the rare texts that have one, a second encoding refuses what is invalid. It does not see what a
// json.Marshaler has replaced by itself.
func replaced(v any, raw []byte) bool {
	if !bytes.ContainsRune(raw, '\uFFFD') {
		return false
	}
	_, err := jsonv2.Marshal([1]any{v}, json.DefaultOptionsV1(), jsontext.AllowInvalidUTF8(false))
	return err != nil
}

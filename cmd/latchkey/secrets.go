package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

const (
	redisVariable = "LATCHKEY_REDIS"
	keysVariable  = "LATCHKEY_ENCRYPTION_KEYS_FILE"
	passwordFlag  = "--password-file"
	defaultURL    = "redis://127.0.0.1:6379"
)

// keyBytes is the least that an encryption key has.
const keyBytes = 32

// read reads the options that are in the environment and in files. Secrets must not be on the command line,
// which any user of the machine can see.
func (o *options) read(getenv func(string) string) (err error) {
	from, raw := "--redis", o.url
	if raw == "" {
		from, raw = redisVariable, cmp.Or(getenv(redisVariable), defaultURL)
	}
	if o.redis, err = parseURL(from, raw); err != nil {
		return err
	}
	if from == "--redis" && o.redis.Password+o.redis.Sentinel.Password != "" {
		const seen = "--redis has a password, which any user of this machine can see: put the URL into the environment's " + redisVariable
		if o.redis.Sentinel.Password != "" { // there is no file for it
			return usage(seen)
		}
		return usage(seen + ", or the password into a file for --password-file")
	}
	if o.passwordFile != "" {
		if o.redis.Password != "" {
			return usage("%s has a password, and so has --password-file: use one of them", from)
		}
		text, err := readFile(passwordFlag, o.passwordFile)
		if err != nil {
			return err
		}
		if o.redis.Password = strings.TrimRight(text, "\r\n"); o.redis.Password == "" {
			return usage("--password-file: %s is empty", o.passwordFile)
		}
	}
	if o.redis.Username != "" && o.redis.Password == "" {
		return usage("%s names a user without a password: write it into a file for --password-file", from)
	}
	if err := o.readTLS(); err != nil {
		return err
	}
	from, file := "--keys-file", o.keysFile
	if file == "" {
		from, file = keysVariable, getenv(keysVariable)
	}
	if file != "" {
		o.keysFile = file
		o.keys, err = readKeys(from, file)
	}
	return err
}

// readKeys reads a file of keys, newest first. Its errors contain no part of a key.
func readKeys(from, file string) (keys [][]byte, _ error) {
	text, err := readFile(from, file)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := hex.DecodeString(line)
		if err != nil || len(key) < keyBytes {
			return nil, usage("the file of keys: line %d of %s is not a key: a key has 64 or more hexadecimal digits", n, file)
		}
		if bytes.Count(key, key[:1]) == len(key) {
			return nil, usage("the file of keys: line %d of %s is the same byte again and again: a key is random", n, file)
		}
		if slices.ContainsFunc(keys, func(other []byte) bool { return bytes.Equal(other, key) }) {
			return nil, usage("the file of keys: line %d of %s repeats a key", n, file)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, usage("the file of keys: %s has no key", file)
	}
	return keys, nil
}

// isLikeKey reports whether the name of a file may be a key in another form than hexadecimal: in base64, or with a long word.
func isLikeKey(name string) bool {
	text := strings.TrimRight(name, "=")
	for _, form := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := form.DecodeString(text); err == nil && len(key) >= keyBytes {
			return true
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(`/\.-_ `, r) })
	return slices.ContainsFunc(words, func(word string) bool { return len(word) >= 20 })
}

// readFile reads the file that a flag or a variable names. Its errors repeat the name, unless it may be what the file
// should hold, as by "$(cat client.key)".
func readFile(from, file string) (string, error) {
	key, err := hex.DecodeString(strings.TrimSpace(file))
	isKey := err == nil && len(key) >= keyBytes
	if isKey || strings.Contains(file, "\n") || strings.Contains(file, "-----BEGIN") {
		return "", usage("%s takes the name of a file, not its content", from)
	}
	b, err := os.ReadFile(file)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	switch {
	case err != nil && (from == passwordFlag || isLikeKey(file)):
		return "", usage("%s: %v", from, err)
	case err != nil:
		return "", usage("%s: %s: %v", from, file, err)
	}
	return string(b), nil
}

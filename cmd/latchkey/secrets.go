package main

import (
	"cmp"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"
)

const (
	redisVariable = "LATCHKEY_REDIS"
	keysVariable  = "LATCHKEY_ENCRYPTION_KEYS_FILE"
	defaultURL    = "redis://127.0.0.1:6379"
)

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
		return usage("--redis has a password, which any user of this machine can see: "+
			"put the URL into the environment's %s, or the password into a file for --password-file", redisVariable)
	}
	if o.passwordFile != "" {
		if o.redis.Password != "" {
			return usage("%s has a password, and so has --password-file: use one of them", from)
		}
		text, err := readFile("--password-file", o.passwordFile)
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
	if file := cmp.Or(o.keysFile, getenv(keysVariable)); file != "" {
		o.keysFile = file
		o.keys, err = readKeys(file)
	}
	return err
}

// readKeys reads a file of keys, newest first. Its errors contain no part of a key.
func readKeys(file string) (keys [][]byte, _ error) {
	text, err := readFile("the file of keys", file)
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
		if err != nil || len(key) < 32 {
			return nil, usage("the file of keys: line %d of %s is not a key: a key has 64 or more hexadecimal digits", n, file)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, usage("the file of keys: %s has no key", file)
	}
	return keys, nil
}

func readFile(what, file string) (string, error) {
	b, err := os.ReadFile(file)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	if err != nil {
		return "", usage("%s: %s: %v", what, file, err)
	}
	return string(b), nil
}

package records

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Encryption is that of package store, which documents it.
type Encryption struct {
	Keys                    [][]byte
	AcceptPlain, WritePlain bool
}

// # The sealed form
//
// A sealed record is one like any other, but for its data and what announces them:
//
//	{"v":2,"s":"<revision>","c":<Unix ms>,"e":<key id><nonce><ciphertext><tag>}
//
// with 4, 12, any number of and 16 raw bytes. The scripts know records by their heads, and look at
// nothing beyond the e. A process that is too old to know it refuses it.
//
// Of a user's session, what lists show is sealed apart, so that it can be opened without the rest:
//
//	"e":<key id><size><nonce><device><tag><nonce><ciphertext><tag>}
//
// with a size of 2 bytes, of what is between it and the next nonce.
//
// The data are sealed with AES-256-GCM under a key of this one session, which HKDF derives from
// one of Keys and the session's key in Redis. So a record is worth nothing under another id or
// prefix, and the number of random nonces that is safe with one key, 2^32, is never reached. All
// that is before it is authenticated, but for a user's epoch, so nobody can make a session last longer, or give
// its revision to other data. (Who can write to Redis can change the mark as well, so the epoch would keep
// nobody from bringing a session back.)
//
// The key id says which of Keys it is, and none is ever tried that it does not name. Whether plain
// data are accepted is for the options to say, never for a record.
const (
	plainMark  = `,"d":`
	sealedMark = `,"e":` // as long as plainMark
	minKey     = 32
	keyIDBytes = 4
	sizeBytes  = 2
	sealBytes  = keyIDBytes + 12 + 16 // by which a sealed record is longer
	apartBytes = sizeBytes + 12 + 16  // and that of a user once more
)

// A keyring has the keys of a store. A nil one encrypts nothing.
type keyring struct {
	masters                 []master // newest first
	acceptPlain, writePlain bool
}

type master struct {
	id string // derived as well
	// derive returns what seals and opens the session with that key in Redis. It holds the master
	// key, which printers must not find: they cannot look into a closure.
	derive func(key string) cipher.AEAD
	tag    func(name string) [tagBytes]byte // of a user, see user.go
}

// newKeyring returns nil for an Encryption without keys.
func newKeyring(e Encryption) (*keyring, error) {
	if len(e.Keys) == 0 {
		if e.AcceptPlain || e.WritePlain {
			return nil, errors.New("store: Options.Encryption has no Keys, and AcceptPlain and WritePlain mean nothing without them")
		}
		return nil, nil
	}
	ring := &keyring{acceptPlain: e.AcceptPlain || e.WritePlain, writePlain: e.WritePlain}
	for i, key := range e.Keys {
		if len(key) < minKey {
			return nil, fmt.Errorf("store: Options.Encryption.Keys[%d] has %d bytes: it must have at least %d random ones", i, len(key), minKey)
		}
		m, err := newMaster(key)
		if err != nil {
			return nil, fmt.Errorf("store: Options.Encryption.Keys[%d]: %w", i, err)
		}
		if ring.find([]byte(m.id)) != nil {
			return nil, fmt.Errorf("store: Options.Encryption.Keys[%d] is there twice", i)
		}
		ring.masters = append(ring.masters, m)
	}
	return ring, nil
}

// newMaster keeps nothing of key, which the caller may wipe.
func newMaster(key []byte) (master, error) {
	secret, err := hkdf.Extract(sha256.New, key, nil)
	if err != nil {
		return master{}, err
	}
	id, err := hkdf.Expand(sha256.New, secret, "latchkey key id", keyIDBytes)
	if err != nil {
		return master{}, err
	}
	derive := func(key string) (cipher.AEAD, error) {
		k, err := hkdf.Expand(sha256.New, secret, "latchkey record "+key, 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, err
		}
		return cipher.NewGCMWithRandomNonce(block)
	}
	tagKey, err := hkdf.Expand(sha256.New, secret, "latchkey users", 32)
	if err != nil {
		return master{}, err
	}
	_, err = derive("")
	return master{string(id), func(key string) cipher.AEAD {
		aead, _ := derive(key) // what could fail does not depend on the session, and was tried above
		return aead
	}, newTagger(tagKey)}, err
}

// find returns the master key with an id, or nil.
func (k *keyring) find(id []byte) *master {
	for i := range k.masters {
		if k.masters[i].id == string(id) {
			return &k.masters[i]
		}
	}
	return nil
}

// overhead is by how much a record is longer.
func (k *keyring) overhead(r *Record) int {
	switch {
	case k.writePlain:
		return 0
	case r.User != "":
		return sealBytes + apartBytes
	}
	return sealBytes
}

// A box seals and opens the records of one session. A nil one seals nothing, and opens what is not
// sealed. It is used by one goroutine at a time.
type box struct {
	ring   *keyring
	key    string      // of the record in Redis
	newest cipher.AEAD // once it is needed: deriving it takes as long as sealing 1 KB
}

// box returns the box of a session, or nil where nothing is encrypted.
func (s *Engine) box(id string) *box {
	if s.ring == nil {
		return nil
	}
	return &box{ring: s.ring, key: s.recordKey(id)}
}

// with returns what seals and opens with m.
func (b *box) with(m *master) cipher.AEAD {
	if m != &b.ring.masters[0] {
		return m.derive(b.key)
	}
	if b.newest == nil {
		b.newest = m.derive(b.key)
	}
	return b.newest
}

// seal returns the stored form of r.
func (b *box) seal(r Record) []byte {
	m, epoch := &b.ring.masters[0], r.epoch
	seal := b.with(m)
	r.epoch = noEpoch // which it is sealed with
	text := r.appendHead(make([]byte, 0, r.size()+b.ring.overhead(&r)), sealedMark)
	text = append(text, m.id...)
	if r.User != "" {
		at := len(text)
		begins := at + sizeBytes
		text = sealFrom(seal, r.appendDevice(append(text, 0, 0)), begins, at)
		binary.BigEndian.PutUint16(text[at:], uint16(len(text)-begins))
	}
	begins := len(text)
	text = append(sealFrom(seal, r.appendData(text), begins, begins), '}')
	if epoch != "" {
		copy(text[bytes.Index(text, []byte(epochMark))+len(epochMark):], epoch)
	}
	return text
}

// sealFrom seals a text from one byte on, in place, together with what is before the other.
func sealFrom(seal cipher.AEAD, text []byte, begins, before int) []byte {
	return seal.Seal(text[:begins], nil, text[begins:], text[:before])
}

// opener returns what opens a stored record's data, nil if they are not sealed. Their beginning is enough. b is nil
// if the store has no keys; then it is called only for sealed data.
func (b *box) opener(data []byte, sealed bool) (cipher.AEAD, error) {
	switch {
	case b == nil:
		return nil, fmt.Errorf("%w: it is sealed, and Options.Encryption has no Keys", ErrCorrupt)
	case !sealed && b.ring.acceptPlain:
		return nil, nil
	case !sealed:
		return nil, fmt.Errorf("%w: it is not sealed, and Options.Encryption does not accept that", ErrCorrupt)
	case len(data) < keyIDBytes:
		return nil, errCutOff
	}
	m := b.ring.find(data[:keyIDBytes])
	if m == nil {
		return nil, fmt.Errorf("%w: it is sealed with the key %x, which is not in Options.Encryption", ErrCorrupt, data[:keyIDBytes])
	}
	return b.with(m), nil
}

// open opens what was sealed with what is before it.
func open(seal cipher.AEAD, sealed, before []byte) ([]byte, error) {
	plain, err := seal.Open(nil, nil, sealed, withoutEpoch(before))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or sealed for another session", ErrCorrupt)
	}
	return plain, nil
}

// openDevice opens what of a user's record begins at a byte, and returns where the next part does.
func openDevice(seal cipher.AEAD, text []byte, at int) (plain []byte, next int, err error) {
	if len(text) < at+sizeBytes {
		return nil, at, errCutOff
	}
	begins := at + sizeBytes
	next = begins + int(binary.BigEndian.Uint16(text[at:]))
	if next > len(text) {
		return nil, at, errCutOff
	}
	plain, err = open(seal, text[begins:next], text[:at])
	return plain, next, err
}

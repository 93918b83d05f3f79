package records

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Encryption is documented in package store.
type Encryption struct {
	Keys                    [][]byte
	AcceptPlain, WritePlain bool
}

// # The sealed form
//
// A sealed record differs from a plain one in its data, and in the name in front of the data:
//
//	{"v":2,"s":"<revision>","c":<Unix ms>,"e":<key id><nonce><ciphertext><tag>}
//
// These parts are raw bytes: 4, 12, any number, and 16. The scripts read only the head of a record, and
// nothing beyond the e. A process that is too old to know this form refuses it.
//
// In the record of a user's session, the device is sealed separately, so that ListUser can open it without
// the rest:
//
//	"e":<key id><size><nonce><device><tag><nonce><ciphertext><tag>}
//
// The size has 2 bytes. It is the number of bytes between it and the second nonce.
//
// The data are sealed with AES-256-GCM. Each session has its own key, which HKDF derives from one of Keys and
// the session's key in Redis. So a record is useless under another ID or prefix, and the number of random
// nonces that is safe with one key, 2^32, is never reached. All that stands before the ciphertext is
// authenticated, except the epoch of a user's session. So a session cannot be made to last longer, and its
// revision cannot be given to other data. (Authenticating the epoch would not keep an attacker from bringing
// a session back: with the right to write to Redis, the mark can be changed as well.)
//
// The key ID names one of Keys, and only that key is tried. The options alone decide whether plain data are
// accepted, never a record.
const (
	plainMark  = `,"d":`
	sealedMark = `,"e":` // as long as plainMark
	minKey     = 32
	keyIDBytes = 4
	sizeBytes  = 2
	sealBytes  = keyIDBytes + 12 + 16 // by so much a sealed record is longer
	apartBytes = sizeBytes + 12 + 16  // by so much more that of a user is longer
)

// A keyring has the keys of a store. A nil one encrypts nothing.
type keyring struct {
	masters                 []master // newest first
	acceptPlain, writePlain bool
}

type master struct {
	id string // the key ID, derived from the key
	// derive returns the AEAD of the session with this key in Redis. derive is a closure because it holds the
	// master key: what prints a master cannot look into a closure.
	derive func(key string) cipher.AEAD
	tag    func(name string) [tagBytes]byte // returns the tag of a user, see user.go
}

// newKeyring returns nil for an Encryption without keys.
func newKeyring(e Encryption) (*keyring, error) {
	if len(e.Keys) == 0 {
		if e.AcceptPlain || e.WritePlain {
			return nil, errors.New("store: Options.Encryption has no Keys: without them AcceptPlain and WritePlain must not be set")
		}
		return nil, nil
	}
	ring := &keyring{acceptPlain: e.AcceptPlain || e.WritePlain, writePlain: e.WritePlain}
	for i, key := range e.Keys {
		if len(key) < minKey {
			return nil, fmt.Errorf("store: Options.Encryption.Keys[%d] has %d bytes: it must have at least %d random ones", i, len(key), minKey)
		}
		if bytes.Count(key, key[:1]) == len(key) { // make([]byte, 32) that nobody has filled
			return nil, fmt.Errorf("store: Options.Encryption.Keys[%d] is %d times the same byte: it must have at least %d random ones", i, len(key), minKey)
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

// An UnknownKey is the error of a record that is sealed with a key that Options.Encryption does not have. It is an
// [ErrCorrupt].
type UnknownKey struct {
	ID string // see KeyID
}

func (u *UnknownKey) Error() string {
	return fmt.Sprintf("%v: it is sealed with the key %s, which is not in Options.Encryption", ErrCorrupt, u.ID)
}

// Unwrap returns ErrCorrupt.
func (u *UnknownKey) Unwrap() error { return ErrCorrupt }

// KeyID returns the ID of a key of Options.Encryption, by which a record names the key that it is sealed with. The ID
// does not give the key away.
func KeyID(key []byte) (string, error) {
	m, err := newMaster(key)
	return hex.EncodeToString([]byte(m.id)), err
}

// newMaster derives a master from key. It does not keep key, so the caller may wipe it.
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
		aead, _ := derive(key) // cannot fail: the call above succeeded, and the session makes no difference
		return aead
	}, newTagger(tagKey)}, err
}

// find returns the master with this key ID, or nil.
func (k *keyring) find(id []byte) *master {
	for i := range k.masters {
		if k.masters[i].id == string(id) {
			return &k.masters[i]
		}
	}
	return nil
}

// overhead returns by how many bytes sealing makes a record longer.
func (k *keyring) overhead(r *Record) int {
	switch {
	case k.writePlain:
		return 0
	case r.User != "":
		return sealBytes + apartBytes
	}
	return sealBytes
}

// A box seals and opens the records of one session. A nil box writes and reads plain records. One goroutine
// at a time may use a box.
type box struct {
	ring   *keyring
	key    string      // of the record in Redis
	newest cipher.AEAD // derived when it is first needed: that takes as long as sealing 1 KB
}

// box returns the box of a session, or nil without encryption.
func (s *Engine) box(id string) *box {
	if s.ring == nil {
		return nil
	}
	return &box{ring: s.ring, key: s.recordKey(id)}
}

// with returns the session's AEAD under m.
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
	r.epoch = noEpoch // it is sealed with this; see withoutEpoch
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

// sealFrom seals text from byte begins on, in place, and authenticates text[:before].
func sealFrom(seal cipher.AEAD, text []byte, begins, before int) []byte {
	return seal.Seal(text[:begins], nil, text[begins:], text[:before])
}

// opener returns the AEAD that opens the data of a stored record, or nil if the data are not sealed. It needs
// only the beginning of the data. b is nil if the store has no keys; then opener is called only for sealed
// data.
func (b *box) opener(data []byte, sealed bool) (cipher.AEAD, error) {
	switch {
	case b == nil:
		return nil, fmt.Errorf("%w: it is sealed, and Options.Encryption has no Keys", ErrCorrupt)
	case !sealed && b.ring.acceptPlain:
		return nil, nil
	case !sealed:
		return nil, fmt.Errorf("%w: it is not sealed, and Options.Encryption does not accept plain records", ErrCorrupt)
	case len(data) < keyIDBytes:
		return nil, errCutOff
	}
	m := b.ring.find(data[:keyIDBytes])
	if m == nil {
		return nil, &UnknownKey{ID: hex.EncodeToString(data[:keyIDBytes])}
	}
	return b.with(m), nil
}

// open opens sealed, and checks before, which was authenticated with it.
func open(seal cipher.AEAD, sealed, before []byte) ([]byte, error) {
	plain, err := seal.Open(nil, nil, sealed, withoutEpoch(before))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or sealed for another session", ErrCorrupt)
	}
	return plain, nil
}

// openDevice opens the sealed device, which begins at byte at of a user's record. The next part begins at
// byte next.
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

package store_test

import (
	"log"

	"github.com/a2139e8d/latchkey/store"
)

// What sessions hold is unreadable in Redis and its backups. The newest key seals; the older ones
// still open what they have sealed, until the last of those sessions has ended.
func ExampleEncryption() {
	newest, older := secret("SESSION_DATA_KEY"), secret("SESSION_DATA_KEY_BEFORE")

	st, err := store.Open("redis://127.0.0.1:6379", store.Options{
		Encryption: store.Encryption{Keys: [][]byte{newest, older}}, // at least 32 random bytes each
	})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}

// secret stands for the way that an application gets its secrets.
func secret(name string) []byte { return []byte(name + ": at least 32 random bytes") }

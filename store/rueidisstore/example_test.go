package rueidisstore_test

import (
	"log"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/rueidis"
)

func ExampleOpen_cluster() {
	st, err := rueidisstore.Open(rueidis.ClientOption{
		InitAddress: []string{"node-1:6379", "node-2:6379", "node-3:6379"},
	}, store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}

func ExampleOpen_sentinel() {
	st, err := rueidisstore.Open(rueidis.ClientOption{
		InitAddress: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
		Sentinel:    rueidis.SentinelOption{MasterSet: "sessions"},
	}, store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}

func ExampleOpen_url() {
	where, err := rueidis.ParseURL("rediss://latchkey:secret@redis.internal:6379/0")
	if err != nil {
		log.Fatal("the URL of Redis cannot be parsed") // the error repeats the URL
	}
	st, err := rueidisstore.Open(where, store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}

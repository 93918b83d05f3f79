package rueidisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// One server. For Sentinel and for a cluster, see the other examples.
func ExampleOpen() {
	mini, err := miniredis.Run() // a Redis for this example
	if err != nil {
		log.Fatal(err)
	}
	defer mini.Close()

	st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{mini.Addr()}}, store.Options{})
	if err != nil {
		log.Fatal(err) // an option cannot work
	}
	defer st.Close()
	fmt.Println(st.Ping(context.Background())) // Open does not connect, so Redis may be started later
	// Output:
	// <nil>
}

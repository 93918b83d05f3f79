package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// shardOf finds in a line of nodes.conf the name of a node, the name of its shard, and the name of
// its master, which is "-" for a master.
var shardOf = regexp.MustCompile(`(?m)^(\w+) .*shard-id=(\w+)\S* \S+ (\S+) `)

// shardsDiffer returns an error until all nodes have saved that a replica is in its master's shard,
// and agree on the names of the shards. Each node invents such a name for itself. A new replica takes
// its master's, and gossip tells the others. Valkey 8.0 ends at its start if its file puts a
// replica elsewhere: https://github.com/valkey-io/valkey/issues/774. Servers without shards save none.
func (c *Cluster) shardsDiffer() error {
	shards := make(map[string]string)
	for _, node := range c.Nodes {
		saved, err := os.ReadFile(filepath.Join(node.backend.(*process).dir, "nodes.conf"))
		if err != nil {
			return err
		}
		for _, line := range shardOf.FindAllSubmatch(saved, -1) {
			for _, name := range []string{string(line[1]), string(line[3])} {
				shard := string(line[2])
				if known, ok := shards[name]; ok && known != shard && name != "-" {
					return fmt.Errorf("%s saved that %s is in shard %s, not %s", node.Addr, name, shard, known)
				}
				shards[name] = shard
			}
		}
	}
	return nil
}

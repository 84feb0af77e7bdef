// The end of an incarnation: because an operator replaced the master's files, or because an
// eviction policy may have removed locks.

package admission

import (
	_ "embed"
	"strings"

	"redlockd/pool/wire"
)

//go:embed end.lua
var endScript string

// Ended is an incarnation that EndIncarnations ended, in one database.
type Ended struct{ DB, Identity string }

// EndIncarnations ends those of all databases of the server. sealKey is the key of the seal.
func EndIncarnations(link wire.Link, sealKey string) ([]Ended, error) {
	replies := link.Exchange([]wire.Command{{Args: []string{"EVAL", endScript, "1", sealKey}}}, nil)
	if err := wire.ExchangeErr(replies, 1); err != nil {
		return nil, err
	}
	if replies[0].Err != nil {
		return nil, replies[0].Err
	}
	var all []Ended
	for _, item := range replies[0].Items {
		db, identity, _ := strings.Cut(item.Str, " ")
		all = append(all, Ended{db, identity})
	}
	return all, nil
}

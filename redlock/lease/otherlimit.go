package lease

import (
	"fmt"

	"redlockd/redlock/engine"
)

// OtherLimit means that most masters hold the key for another number of permits.
type OtherLimit struct {
	Key          engine.Key
	Asked, Limit int
}

func (e *OtherLimit) Error() string {
	return fmt.Sprintf("LIMIT %d was asked for '%s', which is held with LIMIT %d: all users of a key must give the same number, another number only while the key is free",
		e.Asked, e.Key, e.Limit)
}

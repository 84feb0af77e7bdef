// Categories of commands: what a user can be granted, and what every user has.

package access

// Categories of commands. Users are granted categories.
const (
	CategoryLock       = "lock"       // takes, prolongs and releases locks
	CategoryRead       = "read"       // reads and changes nothing
	CategoryID         = "id"         // gives ids
	CategoryWork       = "work"       // takes and ends attempts at work
	CategoryAdmin      = "admin"      // commands for operators
	CategoryForce      = "force"      // takes locks away from others
	CategoryEvents     = "events"     // subscribes; every user may unless it is denied
	CategoryInfo       = "info"       // describes the daemon; every user may unless it is denied
	CategoryConnection = "connection" // every client may send these
)

// GrantedToAll reports whether users have a category without a grant. Client
// libraries send such commands when they connect.
func GrantedToAll(category string) bool {
	return category == CategoryConnection || category == CategoryEvents || category == CategoryInfo
}

// Categories are what a user can be granted, in the order of the documentation.
func Categories() []string {
	return []string{CategoryLock, CategoryRead, CategoryID, CategoryWork, CategoryAdmin, CategoryForce}
}

// Deniable are the categories that every user has unless they are denied.
func Deniable() []string { return []string{CategoryEvents, CategoryInfo} }

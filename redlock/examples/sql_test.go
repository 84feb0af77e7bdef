// This example guards a table: the row stores the largest fence it was written with.

package examples

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // PostgreSQL and MySQL take the same statement
)

// The comparison and the write are one statement, so nothing comes between them.
// "<=" and not "<": one holder may write several times.
const setState = `UPDATE invoices SET state = :state, fence = :fence WHERE id = :id AND fence <= :fence`

// writeState reports whether the row took the write. If not, a client with a larger fence
// has written before, and the caller no longer holds the lock.
func writeState(db *sql.DB, id int, state string, fence int64) (bool, error) {
	result, err := db.ExecContext(context.Background(), setState,
		sql.Named("state", state), sql.Named("fence", fence), sql.Named("id", id))
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

func Example_table() {
	db, err := sql.Open("sqlite", "file::memory:?cache=shared")
	must(err)
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE invoices (id INTEGER PRIMARY KEY, state TEXT, fence BIGINT NOT NULL DEFAULT 0)`)
	must(err)
	_, err = db.Exec(`INSERT INTO invoices (id, state) VALUES (7, 'open')`)
	must(err)

	stale := lock(sleeper, "invoice:7", 1000) // and now it is paused for longer than that
	fence := lock(other, "invoice:7", 30000)

	fmt.Println(writeState(db, 7, "sent", fence))
	fmt.Println(writeState(db, 7, "archived", fence))
	fmt.Println(writeState(db, 7, "cancelled", stale))
	var state string
	must(db.QueryRow(`SELECT state FROM invoices WHERE id = 7`).Scan(&state))
	fmt.Println(state)
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// archived
}

func TestPages_ShowWhatIsTested(t *testing.T) {
	for name, want := range map[string]string{
		"README.md":          setState[strings.Index(setState, "fence = :fence"):],
		"commands/README.md": strings.TrimSpace(setGuarded),
	} {
		page, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), want) {
			t.Errorf("%s does not show\n%s", name, want)
		}
	}
}

package commands_test

import (
	"strings"
	"testing"

	"redlockd/commands"
)

func TestRows_WriteIDsAndWorkAsPeopleReadThem(t *testing.T) {
	want := map[string]string{
		"dnextid":     "id: DNEXTID name [COUNT n]",
		"dids":        "read: DIDS [name]",
		"didreseed":   "admin: DIDRESEED name value",
		"dwork":       "work: DWORK key timeout MAX n [WAIT ms] [KEEP ms] [META text]",
		"dworkdone":   "work: DWORKDONE key token [RESULT result]",
		"dworkfail":   "work: DWORKFAIL key token",
		"dworkextend": "work: DWORKEXTEND key token timeout",
		"dworkinfo":   "read: DWORKINFO key",
	}
	table := newTable(commands.Deps{})
	page := markdown(table.Rows())
	every(table, func(row *commands.Command) {
		if w, ok := want[row.Full]; ok && w != row.Category+": "+row.Syntax {
			t.Errorf(" got %s: %s\nwant %s", row.Category, row.Syntax, w)
		}
		if _, ok := want[row.Full]; ok && !strings.Contains(page, "| `"+row.Syntax+"` | "+row.Summary+" | "+row.Category+" |\n") {
			t.Errorf("%s has no line in the README table", row.Full)
		}
		delete(want, row.Full)
	})
	if len(want) > 0 {
		t.Errorf("not in the table: %v", want)
	}
}

func TestRows_DescribeIDsAndWorkToClients(t *testing.T) {
	newWorkConversation(t).transcript(`
		> COMMAND INFO dids dwork
		< [["dids" :-1 [+readonly] :1 :1 :1 [+@read] [] [{"flags" [+RO +access] "begin_search" {"type" "index" "spec" {"index" :1}} "find_keys" {"type" "range" "spec" {"lastkey" :0 "keystep" :1 "limit" :0}}}] [["dids|del" :5 [+write +admin] :2 :2 :1 [+@admin] [] [{"flags" [+RW +access +update] "begin_search" {"type" "index" "spec" {"index" :2}} "find_keys" {"type" "range" "spec" {"lastkey" :0 "keystep" :1 "limit" :0}}}] []]]] ["dwork" :-5 [+write +blocking] :1 :1 :1 [+@work] [] [{"flags" [+RW +access +update] "begin_search" {"type" "index" "spec" {"index" :1}} "find_keys" {"type" "range" "spec" {"lastkey" :0 "keystep" :1 "limit" :0}}}] []]]
		> COMMAND DOCS dnextid
		< {"dnextid" {"summary" "Gives the first of n consecutive new ids of a counter, above every id that was answered before." "since" "0.1.0" "group" "id" "arguments" [{"name" "name" "type" "key" "key_spec_index" :0} {"name" "n" "type" "integer" "token" "COUNT" "flags" [+optional]}]}}
	`)
}

func TestINFO_CountsIDsAndWork(t *testing.T) {
	for volatile, durability := range map[bool]string{false: "on", true: "off"} {
		c, figures := informed(t)
		c.serve(commands.Deps{Masters: figures, VolatileIDs: volatile})
		text := c.start("INFO", "locks").read(t).Text
		for _, line := range []string{"ids:14", "id_rounds:15", "ids_durability:" + durability, "work_started:16", "work_done:17"} {
			if !strings.Contains(text, "\r\n"+line+"\r\n") {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
	}
}

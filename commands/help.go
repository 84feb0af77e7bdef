// Help texts and the README table, generated from the rows.

package commands

import "strings"

// helpRow is the HELP subcommand of a command with subcommands.
func helpRow(of *command) *command {
	return connection("help", exactly(2), "Lists the subcommands.", func(c *Call) error {
		lines := []Reply{Simple("Subcommands of " + strings.ToUpper(of.name) + ":")}
		for _, part := range of.parts {
			lines = append(lines, Simple(part.syntax), Simple("    "+part.summary))
		}
		c.Reply(Array(lines...))
		return nil
	})
}

// Markdown is the table of commands for the README: how each is written, what
// it does and which category a user needs for it.
func (t *Table) Markdown() string {
	var page strings.Builder
	page.WriteString("| command | what it does | category |\n|---|---|---|\n")
	for _, row := range t.rows {
		if len(row.parts) == 0 || row.handle != nil {
			page.WriteString(row.markdown())
		}
		for _, part := range row.parts {
			page.WriteString(part.markdown())
		}
	}
	return page.String()
}

// markdown is one line of the README table; a bar would end its cell.
func (c *command) markdown() string {
	bars := strings.NewReplacer("|", `\|`)
	category := c.category
	if c.also != "" {
		category += ", " + c.also
	}
	return "| `" + bars.Replace(c.syntax) + "` | " + bars.Replace(c.summary) + " | " + category + " |\n"
}

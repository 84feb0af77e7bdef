// Help texts and the README table, generated from the rows.

package commands

import "strings"

// helpRow is the HELP subcommand of a command with subcommands.
func helpRow(of *Command) *Command {
	return Connection("help", Exactly(2), "Lists the subcommands.", func(c *Call) error {
		lines := []Reply{Simple("Subcommands of " + strings.ToUpper(of.Name) + ":")}
		for _, part := range of.Parts {
			lines = append(lines, Simple(part.Syntax), Simple("    "+part.Summary))
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
		if len(row.Parts) == 0 || row.Handle != nil {
			page.WriteString(row.markdown())
		}
		for _, part := range row.Parts {
			page.WriteString(part.markdown())
		}
	}
	return page.String()
}

// markdown is one line of the README table; a bar would end its cell.
func (c *Command) markdown() string {
	bars := strings.NewReplacer("|", `\|`)
	category := c.Category
	if c.Also != "" {
		category += ", " + c.Also
	}
	return "| `" + bars.Replace(c.Syntax) + "` | " + bars.Replace(c.Summary) + " | " + category + " |\n"
}

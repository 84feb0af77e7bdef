// render draws what `redlockd top` shows as text. It uses no terminal, clock or connection.

package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"

	"redlockd/commands/diagnosis"
)

// snapshot has the figures of one refresh.
type snapshot struct {
	title   string
	lost    string // why there is no connection, "" while there is one
	verdict diagnosis.Headline
	figures []string
	panels  []panel // masters, waits, locks
	colours bool    // they repeat what the words mean
	keys    bool    // the last line has the keys
}

// panel is a table with a note below it. Its columns are in the order of their importance.
type panel struct {
	columns []column
	rows    [][]string
	note    string // an error, or what is missing
}

// column is one of texts, which are cut where there is too little space, of words or of numbers.
type column struct {
	head       string
	text, word bool
}

// newColumns takes heads: *TEXT, -WORD and NUMBER.
func newColumns(heads string) (columns []column) {
	for _, head := range strings.Fields(heads) {
		columns = append(columns, column{strings.TrimLeft(head, "*-"), head[0] == '*', head[0] == '-'})
	}
	return columns
}

// summaries of the levels, as on the page, and their colours.
var summaries = map[string][2]string{
	diagnosis.LevelGood: {"All well: ", "32"}, diagnosis.LevelWarn: {"Needs attention: ", "33"}, diagnosis.LevelBad: {"Not serving: ", "31"},
}

// screen is lines of at most width columns.
type screen struct {
	lines   []string
	width   int
	colours bool
	dense   bool // without empty lines, and with one line of figures
}

const (
	minAiry  = 24 // lines of a screen with empty lines
	minRows  = 3  // that a panel has, whatever stands above it
	minPanel = 5  // lines of a screen for each panel, so that one is left for the keys
)

// overhead counts the lines of a panel beside its rows.
func (s *screen) overhead() int {
	if s.dense {
		return 1
	}
	return 2
}

// render draws a snapshot in at most height lines; 0 is no limit.
func render(s snapshot, width, height int) (text string) {
	height = cmp.Or(height, math.MaxInt)
	c := &screen{width: cmp.Or(width, math.MaxInt), colours: s.colours, dense: height < minAiry}
	if s.keys && height > len(s.panels)*minPanel {
		height -= 1 // for the last line
		defer func() { text += shorten("q ends it; redlockd top --help has the columns", c.width) + "\n" }()
	}
	c.add("1", s.title)
	if s.lost != "" {
		c.sentence("31", "NOT CONNECTED: "+s.lost)
	}
	summary := summaries[s.verdict.Level]
	for i, line := range s.verdict.Lines {
		if i == 0 {
			line = summary[0] + line
		}
		c.sentence(summary[1], line)
	}
	head := len(c.lines)
	c.flow("", "   ", s.figures)
	if figures := len(c.lines); c.dense && figures > head+1 {
		c.lines = c.lines[:head+1]
	}
	for i := range s.panels {
		space := height - len(c.lines)
		for j := i + 1; j < len(s.panels); j++ { // the others have space, too
			space -= c.overhead() + min(len(s.panels[j].rows), minRows)
		}
		if i == 1 {
			space = min(space, height/3+c.overhead())
		}
		c.panel(&s.panels[i], space-c.overhead())
	}
	return strings.Join(c.lines[:min(len(c.lines), height)], "\n") + "\n"
}

// panel adds a panel; its note and its rows have that many lines of space.
func (s *screen) panel(p *panel, space int) {
	heads := make([]string, len(p.columns))
	for i := range p.columns {
		heads[i] = p.columns[i].head
	}
	note := screen{width: s.width, colours: s.colours}
	if note.sentence("33", p.note); len(p.rows) == 0 && p.note == "" {
		note.add("", "none")
	}
	rows, more := p.rows, ""
	if space -= len(note.lines); space < len(rows) {
		rows = rows[:max(0, space-1)]
		more = fmt.Sprintf("… and %d more", len(p.rows)-len(rows))
	}
	if !s.dense {
		s.add("", "")
	}
	widths := p.widths(rows, s.width)
	s.row("1", p.columns, widths, heads)
	s.lines = append(s.lines, note.lines...)
	for _, row := range rows {
		s.row("", p.columns, widths, row)
	}
	s.sentence("", more)
}

// widths makes the columns fit. The last columns go, until the texts in the others have a
// quarter of the line; then the widest text shrinks.
func (p *panel) widths(rows [][]string, width int) []int {
	widths, least := make([]int, len(p.columns)), make([]int, len(p.columns))
	for i, column := range p.columns {
		widths[i] = textWidth(column.head)
		for _, row := range rows {
			widths[i] = max(widths[i], textWidth(row[i]))
		}
		if least[i] = widths[i]; column.text {
			least[i] = min(widths[i], max(10, width/4))
		}
	}
	for len(widths) > 1 && lineWidth(least) > width {
		widths, least = widths[:len(widths)-1], least[:len(widths)-1]
	}
	for widest := 0; widest >= 0 && lineWidth(widths) > width; {
		widest = -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest >= 0 {
			widths[widest]--
		}
	}
	return widths
}

// lineWidth is the width of a row, with two spaces between its columns.
func lineWidth(widths []int) int {
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

func (s *screen) row(style string, columns []column, widths []int, cells []string) {
	line := ""
	for i, width := range widths {
		cell := shorten(cells[i], width)
		pad := strings.Repeat(" ", width-textWidth(cell))
		if columns[i].text || columns[i].word {
			cell, pad = cell+pad, ""
		}
		line += pad + cell + "  "
	}
	s.add(style, line)
}

// sentence adds a text in as many lines as it needs, none for "".
func (s *screen) sentence(style, text string) { s.flow(style, " ", strings.Fields(text)) }

// flow adds items in as many lines as they need.
func (s *screen) flow(style, between string, items []string) {
	for len(items) > 0 {
		line, n := items[0], 1
		for ; n < len(items); n++ {
			longer := line + between + items[n]
			if textWidth(longer) > s.width {
				break
			}
			line = longer
		}
		s.add(style, line)
		items = items[n:]
	}
}

// add adds one line. Texts of others cannot control the terminal.
func (s *screen) add(style, text string) {
	text = strings.TrimRight(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text), " ")
	text = shorten(text, s.width)
	if s.colours && style != "" && text != "" {
		text = "\x1b[" + style + "m" + text + "\x1b[m"
	}
	s.lines = append(s.lines, text)
}

// shorten replaces the middle of a text that is wider than width, which is at least 1.
func shorten(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	runes, tail := []rune(text), (width-1)/3
	head := string(fitting(runes, width-1-tail))
	slices.Reverse(runes)
	end := fitting(runes, tail)
	slices.Reverse(end)
	return head + "…" + string(end)
}

// fitting are the first runes that are not wider than width together.
func fitting(runes []rune, width int) []rune {
	for i, r := range runes {
		if width -= runeWidth(r); width < 0 {
			return runes[:i]
		}
	}
	return runes
}

// textWidth returns the number of columns that a text takes on a terminal.
func textWidth(text string) (width int) {
	for _, r := range text {
		width += runeWidth(r)
	}
	return width
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	if kind := eastasian.LookupRune(r).Kind(); kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth {
		return 2
	}
	return 1
}

// Tests that the Markdown pages name only what exists: links, anchors, files, commands,
// subcommands, options and make targets.
package daemon

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"redlockd/commands/cli"
)

// history names what no longer exists, too.
const history = "CHANGELOG.md"

// document is one Markdown file, taken apart.
type document struct {
	path    string            // from the root, with slashes
	prose   string            // without code
	blocks  map[string]string // code blocks by their language, "" for none
	spans   []string          // inline code
	anchors []string          // of the headings
}

var (
	inlineCode  = regexp.MustCompile("`[^`\n]+`")
	headingLine = regexp.MustCompile(`^#{1,6} +(.+?) *#*$`)
	linkTarget  = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: +"[^"]*")?\)`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// readPages reads every Markdown file of the tree.
func readPages(t *testing.T) []*document {
	t.Helper()
	var pages []*document
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || len(file) > 1 && entry.Name()[0] == '.'):
			return filepath.SkipDir
		case !entry.IsDir() && filepath.Ext(file) == ".md":
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			pages = append(pages, newDocument(filepath.ToSlash(file), string(text)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func newDocument(path, text string) *document {
	p := &document{path: path, blocks: make(map[string]string)}
	var prose strings.Builder
	language, inBlock := "", false
	for line := range strings.Lines(text) {
		if info, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			inBlock, language = !inBlock, info
			continue
		}
		if inBlock {
			p.blocks[language] += line
			continue
		}
		prose.WriteString(line)
		if heading := headingLine.FindStringSubmatch(strings.TrimRight(line, "\n")); heading != nil {
			p.addAnchor(heading[1])
		}
	}
	p.spans = inlineCode.FindAllString(prose.String(), -1)
	for i, span := range p.spans {
		p.spans[i] = strings.Trim(span, "`")
	}
	p.prose = inlineCode.ReplaceAllString(prose.String(), "")
	return p
}

// addAnchor makes the anchor of a heading as GitHub does.
func (p *document) addAnchor(heading string) {
	var anchor strings.Builder
	for _, r := range strings.ToLower(linkText.ReplaceAllString(heading, "$1")) {
		switch {
		case r == ' ':
			anchor.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			anchor.WriteRune(r)
		}
	}
	p.anchors = append(p.anchors, anchor.String())
}

// commandLines returns the lines of the code blocks that a shell could run, and the
// inline code.
func (p *document) commandLines() []string {
	lines := slices.Clone(p.spans)
	for _, language := range []string{"", "sh", "bash", "console"} {
		text := strings.ReplaceAll(p.blocks[language], "\\\n", " ")
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	return lines
}

// wrongLinks returns the links of a page that lead nowhere.
func wrongLinks(p *document, pages []*document) []string {
	var wrong []string
	for _, match := range linkTarget.FindAllStringSubmatch(p.prose, -1) {
		target, err := url.Parse(match[1])
		if err != nil {
			wrong = append(wrong, match[1])
			continue
		}
		if target.Scheme != "" {
			continue
		}
		file := p.path
		if target.Path != "" {
			file = path.Join(path.Dir(p.path), target.Path)
		}
		if _, err := os.Stat(file); err != nil || strings.HasPrefix(file, "..") {
			wrong = append(wrong, match[1])
			continue
		}
		if target.Fragment == "" {
			continue
		}
		i := slices.IndexFunc(pages, func(other *document) bool { return other.path == file })
		if i < 0 || !slices.Contains(pages[i].anchors, target.Fragment) {
			wrong = append(wrong, match[1])
		}
	}
	return wrong
}

func TestPages_LinksLeadSomewhere(t *testing.T) {
	pages := readPages(t)
	links := 0
	for _, p := range pages {
		links += len(linkTarget.FindAllString(p.prose, -1))
		for _, target := range wrongLinks(p, pages) {
			t.Errorf("%s: the link to %s leads nowhere", p.path, target)
		}
	}
	if links < 50 {
		t.Errorf("%d links were found, want 50 or more: the pages were not read", links)
	}
}

func TestWrongLinks_AreFound(t *testing.T) {
	right := newDocument("README.md", "# A `b` & c\n## One\n[1](README.md) [2](#a-b--c) [`x`](commands) ![3](https://example.org/x) "+
		"`[4](gone)` [5](configs/../README.md#one)\n```\n[6](gone)\n```\n")
	wrong := newDocument("CHANGELOG.md", "[1](gone.md) [2](README.md#two) [3](#one) [4](commands#one) [5](../README.md)\n")
	pages := []*document{right, wrong}
	if got := wrongLinks(right, pages); len(got) != 0 {
		t.Errorf("right links are reported: %q", got)
	}
	if got := wrongLinks(wrong, pages); len(got) != 5 {
		t.Errorf("%q are reported, want 5 links", got)
	}
}

// fileName is a file of the tree: with a directory, or a Go file alone.
var fileName = regexp.MustCompile(`^([\w-]+/)+[\w.-]+\.(go|lua|md|toml|txt|conf|yaml|json|service)$|^\w+\.go$`)

func TestPages_NameFilesThatExist(t *testing.T) {
	var files []string
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		files = append(files, filepath.ToSlash(file))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range readPages(t) {
		if p.path == history {
			continue
		}
		for _, span := range p.spans {
			exists := func(file string) bool { return file == span || strings.HasSuffix(file, "/"+span) }
			if fileName.MatchString(span) && !slices.ContainsFunc(files, exists) {
				t.Errorf("%s: there is no file %s", p.path, span)
			}
		}
	}
}

// The doc.go of a package has its files in reading order, or some of them.
func TestPages_DocsNameFilesThatExist(t *testing.T) {
	name, named := regexp.MustCompile(`\b[\w/]+\.go\b`), 0
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "doc.go" {
			return err
		}
		text, err := os.ReadFile(file)
		for _, one := range name.FindAllString(string(text), -1) {
			named++
			if _, beside := os.Stat(filepath.Join(filepath.Dir(file), one)); beside == nil {
				continue
			}
			if _, fromRoot := os.Stat(one); fromRoot != nil {
				t.Errorf("%s: there is no file %s", file, one)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 200 {
		t.Errorf("%d files are named, there were more", named)
	}
}

var (
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	shownOption = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	plainWord   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// shell knows what may be typed in a shell.
type shell struct {
	targets, options []string

	lockOptions, topOptions, slotsOptions []string // of the subcommands with options of their own
}

func newShell(t *testing.T) shell {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var s shell
	for _, match := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		s.targets = append(s.targets, match[1])
	}
	for word, options := range map[string]*[]string{"lock": &s.lockOptions, "top": &s.topOptions, "slots": &s.slotsOptions} {
		var help strings.Builder
		app := cli.App{Out: &help}
		if err := app.Run(t.Context(), []string{word, "--help"}); err != nil {
			t.Fatal(err)
		}
		*options = shownOption.FindAllString(help.String(), -1)
	}
	var manual strings.Builder
	if err := (&cli.App{Out: &manual}).Run(t.Context(), []string{"man"}); err != nil {
		t.Fatal(err)
	}
	s.options = shownOption.FindAllString(strings.ReplaceAll(manual.String(), `\-`, "-"), -1)
	s.slotsOptions = append(s.slotsOptions, s.options...)
	return s
}

// wrong returns what of a line does not exist. Lines of other programs are right.
func (s shell) wrong(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
		words = words[1:] // an assignment in front of the command
	}
	if end := slices.IndexFunc(words, func(word string) bool { return word == "&&" || word == "|" || word == ";" }); end >= 0 {
		words = words[:end]
	}
	switch {
	case len(words) == 0:
		return nil
	case words[0] == "make":
		return s.wrongTargets(words[1:])
	case len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == ".":
		return s.wrongArguments(words[3:])
	case path.Base(words[0]) == "redlockd":
		return s.wrongArguments(words[1:])
	}
	return nil
}

func (s shell) wrongTargets(words []string) (wrong []string) {
	for _, word := range words {
		if plainWord.MatchString(word) && !slices.Contains(s.targets, word) {
			wrong = append(wrong, "make "+word)
		}
	}
	return wrong
}

func (s shell) wrongArguments(words []string) (wrong []string) {
	options := s.options
	if len(words) > 0 && plainWord.MatchString(words[0]) {
		if _, err := cli.Parse(words[:1]); err != nil {
			return []string{"redlockd " + words[0]}
		}
		switch words[0] {
		case "lock":
			options = s.lockOptions
		case "top":
			options = s.topOptions
		case "slots":
			options = s.slotsOptions
		}
	}
	for _, word := range words {
		if word == "--" {
			break
		}
		if name := shownOption.FindString(word); name != "" && strings.HasPrefix(word, name) && !slices.Contains(options, name) {
			wrong = append(wrong, name)
		}
	}
	return wrong
}

func TestPages_ShowCommandLinesThatExist(t *testing.T) {
	s := newShell(t)
	for _, p := range readPages(t) {
		if p.path == history {
			continue
		}
		for _, line := range p.commandLines() {
			for _, wrong := range s.wrong(line) {
				t.Errorf("%s: `%s`: there is no %s", p.path, line, wrong)
			}
		}
	}
}

// Options of other programs have no place in these pages, except in whole lines.
func TestPages_NameOptionsThatExist(t *testing.T) {
	s := newShell(t)
	for _, p := range readPages(t) {
		if p.path != "README.md" && p.path != "SECURITY.md" && !strings.HasPrefix(p.path, "commands/") {
			continue
		}
		for _, span := range p.spans {
			name := shownOption.FindString(span)
			if strings.HasPrefix(span, "--") && !slices.Contains(s.options, name) && !slices.Contains(s.lockOptions, name) {
				t.Errorf("%s: there is no option %s", p.path, name)
			}
		}
	}
}

func TestWrongLines_AreFound(t *testing.T) {
	s := newShell(t)
	for line, want := range map[string]int{
		"make test": 0, "make gone": 1, "make chaos MIX=6": 0, "make lint test  # both": 0, "makes sense": 0,
		"go run .": 0, "go run . bootstrap --masters a,b,c": 0, "go run . gone": 1, "go run . --gone=1": 1,
		"redlockd": 0, "redlockd lock --ttl 30s k -- rm --gone": 0, "redlockd lock --max-ttl 1s k -- true": 1,
		"/usr/bin/redlockd check --masters …": 0, "redlockd bootstrap --fence-above N": 0, "redlockd [OPTION…]": 0,
		"REDLOCKD_MAX_TTL=60s redlockd --gone": 1, "redlockd:seal": 0, "redis-server --gone": 0,
	} {
		if got := s.wrong(line); len(got) != want {
			t.Errorf("%s: %q is reported, want %d", line, got, want)
		}
	}
}

var (
	prompt       = regexp.MustCompile(`^(?:[\w.]+:\d+)?> +(.+)`)
	tableRow     = regexp.MustCompile("(?m)^\\| `(([A-Z_]+).*?)` \\|")
	optionWord   = regexp.MustCompile(`^[A-Z]{3,}$`)
	dCommand     = regexp.MustCompile(`^D[A-Z]{2,}\b`)
	dWords       = []string{"DEADLOCK", "DENIED", "DELAY"} // no commands
	pythonCall   = regexp.MustCompile(`execute_command\("([A-Z]+)"`)
	commentStart = regexp.MustCompile(` {2,}|\t`)
)

// syntaxes returns how each command of the table is written, by its name. A test of the
// commands compares the page with their rows.
func syntaxes() map[string]string {
	page, err := os.ReadFile("commands/REFERENCE.md")
	if err != nil {
		panic(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- commands -->")
	table, _, _ = strings.Cut(table, "<!-- /commands -->")
	all := make(map[string]string)
	for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
		all[row[2]] += row[1] + " "
	}
	return all
}

// wrongCommand returns what of a command does not exist: its name, or a word in capitals.
func wrongCommand(line string, syntaxes map[string]string) string {
	line = commentStart.Split(line, 2)[0]
	words := strings.Fields(line)
	syntax, known := syntaxes[words[0]]
	if !known {
		return words[0]
	}
	allowed := regexp.MustCompile(`[A-Z]+`).FindAllString(syntax, -1)
	for _, word := range words[1:] {
		if optionWord.MatchString(word) && !slices.Contains(allowed, word) {
			return word
		}
	}
	return ""
}

func TestPages_ShowCommandsOfTheTable(t *testing.T) {
	known, shown := syntaxes(), 0
	for _, p := range readPages(t) {
		if p.path == history {
			continue
		}
		var lines []string
		for line := range strings.Lines(p.blocks[""]) {
			if match := prompt.FindStringSubmatch(strings.TrimRight(line, "\n")); match != nil {
				lines = append(lines, match[1])
			}
		}
		for _, span := range p.spans {
			if dCommand.MatchString(span) && !slices.Contains(dWords, dCommand.FindString(span)) {
				lines = append(lines, dCommand.FindString(span))
			}
		}
		for _, call := range pythonCall.FindAllStringSubmatch(p.blocks["python"], -1) {
			lines = append(lines, call[1])
		}
		for _, line := range lines {
			shown++
			if wrong := wrongCommand(line, known); wrong != "" {
				t.Errorf("%s: `%s`: the table of commands has no %s", p.path, line, wrong)
			}
		}
	}
	if shown < 50 {
		t.Errorf("%d commands were found, want 50 or more: the pages were not read", shown)
	}
}

func TestWrongCommands_AreFound(t *testing.T) {
	known := syntaxes()
	for line, want := range map[string]string{
		"DLOCK invoices 30000 WAIT 60000      GONE is in a comment": "",
		"DLOCK invoices 30000 GONE":                                 "GONE",
		"DGONE x":                                                   "DGONE",
		"DMASTERS DRAIN a":                                          "",
		"SET invoices v NX PX 30000":                                "",
		"DUNLOCK invoices mBk3m0mNlKf5Mh2PAbFaUZ0yG5E":              "",
	} {
		if got := wrongCommand(line, known); got != want {
			t.Errorf("%s: %q is reported, want %q", line, got, want)
		}
	}
}

// make sim has lines of its own, and golden takes seconds.
func TestMakefile_WhatTakesLongShowsProgress(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	long, own := regexp.MustCompile(`\$\(GO\) test|\$\(GO\) run . |\.ci/(fuzz|interop|other-masters|release)`), regexp.MustCompile("TestSimulation -count|proxy/contract")
	found := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "\t") || !long.MatchString(line) || own.MatchString(line) {
			continue
		}
		if found++; !strings.Contains(line, "$(PROGRESS) ") {
			t.Errorf("this runs for long and shows no progress: %s", line)
		}
	}
	if found < 15 {
		t.Errorf("%d lines run tests, there were more", found)
	}
}

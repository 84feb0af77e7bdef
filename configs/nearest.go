package configs

// nearest.go finds the option name nearest to a misspelt one.

import "strconv"

// maxCompared bounds the work for an arbitrary name.
const maxCompared = 64

// nearest returns the known name with the fewest edits, the first one of equals.
func nearest(name string, known []string) string {
	if len(name) > maxCompared {
		name = name[:maxCompared]
	}
	best, least := "", -1
	for _, candidate := range known {
		if d := distance(name, candidate); least < 0 || d < least {
			best, least = candidate, d
		}
	}
	return best
}

// shownName makes an unknown name fit for an error: a mistake in quoting can put a
// master with its password in the place of a name.
func shownName(name string) string {
	if wordPattern.MatchString(name) {
		return name
	}
	return strconv.Quote(redactEntry(name))
}

// distance is Levenshtein's: insertions, deletions and replacements of bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

package configs

// settings.go contains the settings that CONFIG GET shows.

import "path"

// Settings returns the options whose name matches a glob pattern (* ? [a-z]), with
// the present values, passwords left out. A malformed pattern matches none.
func (c *Config) Settings(pattern string) [][2]string {
	var found [][2]string
	for _, option := range allOptions() {
		if matches, err := path.Match(pattern, option.name); err == nil && matches {
			found = append(found, [2]string{option.name, option.show(c)})
		}
	}
	return found
}

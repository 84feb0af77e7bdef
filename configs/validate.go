package configs

// validate.go checks all settings.

import "strconv"

// Validate returns all problems as joined FieldErrors, or nil.
func (c *Config) Validate() error {
	return join(check(c, allOptions(), func(string) string { return "" }))
}

// check runs the checks of all options; source returns where an option was set.
func check(c *Config, options []option, source func(option string) string) []*FieldError {
	var errs []*FieldError
	for _, option := range options {
		for _, p := range option.check(c) {
			given := option.show(c)
			if given == "" || hasBlank(given) {
				given = strconv.Quote(given)
			}
			errs = append(errs, option.fieldError(p, given, source(option.name)))
		}
	}
	return errs
}

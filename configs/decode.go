package configs

// decode.go decodes the values of flags, variables and TOML into Go values. Flags and
// variables arrive as text, TOML also as numbers, truth values and arrays. The problems
// returned here are ends of sentences ("is not …") and never repeat the value: only the
// caller can decide whether the value is secret.

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxMillis is the largest number of milliseconds a time.Duration can hold.
const maxMillis = int64(math.MaxInt64 / time.Millisecond)

// decodeDuration reads Go's notation ("100ms", "1m30s"); a bare integer is
// milliseconds, as everywhere in the protocol.
func decodeDuration(value any) (time.Duration, error) {
	switch v := value.(type) {
	case int64:
		return millis(v)
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return millis(n)
		}
		d, err := time.ParseDuration(v)
		if err != nil {
			return 0, errors.New("is not a duration")
		}
		return d, nil
	}
	return 0, fmt.Errorf("is %s and not a duration", kindOf(value))
}

func millis(n int64) (time.Duration, error) {
	if n > maxMillis || n < -maxMillis {
		return 0, errors.New("is more milliseconds than a duration can hold")
	}
	return time.Duration(n) * time.Millisecond, nil
}

// decodeInt reads a decimal integer without blanks, separators or a sign +.
func decodeInt(value any) (int, error) {
	switch v := value.(type) {
	case int64:
		return int(v), nil
	case string:
		n, err := strconv.Atoi(v)
		if err != nil || strings.HasPrefix(v, "+") {
			return 0, errors.New("is not a whole number")
		}
		return n, nil
	}
	return 0, fmt.Errorf("is %s and not a whole number", kindOf(value))
}

func decodeBool(value any) (bool, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch v {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, errors.New("is neither true nor false")
	}
	return false, fmt.Errorf("is %s and neither true nor false", kindOf(value))
}

func decodeText(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	return "", fmt.Errorf("is %s and not text in quotes", kindOf(value))
}

// decodeList accepts one text, a flag that was repeated, and an array of texts
// in the file. Commas are not split: their meaning depends on the option.
func decodeList(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case []string:
		return v, nil
	case []any:
		list := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("holds %s as entry %d and not text in quotes", kindOf(item), i+1)
			}
			list[i] = text
		}
		return list, nil
	}
	return nil, fmt.Errorf("is %s and neither text nor an array of texts", kindOf(value))
}

// kindOf names a TOML value for people.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case bool:
		return "a truth value"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// shortDuration formats 60s as 1m and 24h as 24h, where String appends zeros.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

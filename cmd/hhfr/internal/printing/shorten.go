package printing

import "fmt"

// OrDash formats a value that is there, and returns a dash otherwise.
func OrDash(there bool, format string, args ...any) string {
	if !there {
		return "-"
	}
	return fmt.Sprintf(format, args...)
}

// Shorten fits a printable text into n columns.
func Shorten(s string, n int) string {
	s = Printable(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Dash is s, or a dash for nothing.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// OrNone is s, or none for nothing.
func OrNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

package differential

import (
	"slices"
	"strings"
)

// diff returns the lines that only a has, marked with "- ", and those that only b has, marked
// with "+ ", in order.
func diff(a, b []string) (lines []string) {
	if slices.Equal(a, b) {
		return nil
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+a[i])
			i++
		default:
			lines = append(lines, "+ "+b[j])
			j++
		}
	}
	return lines
}

// matches reports whether s is like pattern, in which each * stands for anything.
func matches(pattern, s string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, first) {
		return false
	}
	if s = s[len(first):]; !more {
		return s == ""
	}
	for i := range len(s) + 1 {
		if matches(rest, s[i:]) {
			return true
		}
	}
	return false
}

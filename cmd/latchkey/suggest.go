package main

import "slices"

// suggestion returns the word that was probably meant, as in ": do you mean list?", or "".
func suggestion(typed string, known []string) string {
	best, least := "", 3 // more than two mistakes are another word
	for _, word := range known {
		if n := edits(typed, word); n < least && n < len(word)-1 {
			best, least = word, n
		}
	}
	if i := slices.IndexFunc(known, func(word string) bool { return len(typed) > 0 && len(typed) < len(word) && word[:len(typed)] == typed }); best == "" && i >= 0 {
		best = known[i]
	}
	if best == "" {
		return ""
	}
	return ": do you mean " + best + "?"
}

// edits returns how many letters must be changed, added, removed, or exchanged with the next, to make one word of
// another.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

package main

import "github.com/mattn/go-runewidth"

// columnsOf knows how many columns of a terminal a text takes: a combining mark none, and a character of China, Japan or
// Korea two. It is the same in all locales.
var columnsOf = &runewidth.Condition{StrictEmojiNeutral: true}

// widthOf returns how many columns of a terminal s takes.
func widthOf(s string) int { return columnsOf.StringWidth(s) }

// firstColumns returns the longest beginning of s that takes at most n columns.
func firstColumns(s string, n int) string { return columnsOf.Truncate(s, n, "") }

// lastColumns returns the longest end of s that takes at most n columns.
func lastColumns(s string, n int) string {
	return columnsOf.TruncateLeft(s, max(0, widthOf(s)-n), "")
}

package store

import (
	"bytes"
	"fmt"
	"testing"
)

func BenchmarkSeal(b *testing.B) {
	ring := boxOf(b, encrypted(newKey), theID).ring
	for _, kb := range []int{0, 1, 10, 200} {
		record := Record{Data: bytes.Repeat([]byte("x"), kb<<10), Created: born, name: "ABCDEFGHIJKLMNOP"}
		known := &box{ring: ring, key: theRecord}
		stored := record.text(known)
		b.Run(fmt.Sprintf("%dKB/seal", kb), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				record.text(known)
			}
		})
		b.Run(fmt.Sprintf("%dKB/plain", kb), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				record.text(nil)
			}
		})
		b.Run(fmt.Sprintf("%dKB/derive, open, seal", kb), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fresh := &box{ring: ring, key: theRecord}
				if _, err := parseRecord(stored, fresh); err != nil {
					b.Fatal(err)
				}
				record.text(fresh)
			}
		})
	}
}

package main

import (
	"testing"
	"time"
)

// All forms of a record's beginning are read, and what is none is not taken for one.
func TestParseHead(t *testing.T) {
	t.Parallel()
	const begun = `{"v":2,"s":"ABCDEFGHIJKLMNOP",`
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	for text, want := range map[string]head{
		begun + `"c":1700000000123,"d":{}}`:                                     {created: at(1700000000123)},
		begun + `"c":1700000000123,"e":` + "\x00\xff\n}":                        {created: at(1700000000123), sealed: true},
		begun + `"c":5,"i":300000,"d":{"e":1}}`:                                 {created: at(5), idle: 5 * time.Minute},
		begun + `"c":5,"u":7,"e":x}`:                                            {created: at(5), until: at(7), sealed: true},
		begun + `"c":5,"g":001700000000123,"d":["ann","",{}]}`:                  {created: at(5)},
		begun + `"c":5,"g":001700000000123,"i":1,"u":7,"d":["ann","",{"e":1}]}`: {created: at(5), idle: time.Millisecond, until: at(7)},
		begun + `"gone":1700000000123}`:                                         {gone: true, ended: at(1700000000123)},
		begun + `"gone":0}`:                                                     {gone: true},
	} {
		if got, ok := parseHead(text); !ok || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "{}", `{"v":3,"s":"A","c":5,"d":{}}`, begun, begun + `"gone":5,"d":{}}`, begun + `"d":{}}`} {
		if got, ok := parseHead(text); ok {
			t.Errorf("%s is taken for %+v", text, got)
		}
	}
}

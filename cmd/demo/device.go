package main

import (
	"net/http"
	"strings"
)

// browsers and systems are recognised by words in User-Agent. Most browsers name others, too, so the order
// matters.
var (
	browsers = [][2]string{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"FxiOS/", "Firefox"},
		{"Firefox/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	}
	systems = [][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"CrOS", "ChromeOS"}, {"Macintosh", "a Mac"}, {"Linux", "Linux"},
	}
)

// device describes the device of a user who signs in. The browser itself sends the information, so it proves
// nothing.
func device(r *http.Request) string {
	browser, system := known(browsers, r.UserAgent()), known(systems, r.UserAgent())
	switch {
	case browser == "":
		return "Some program"
	case system == "":
		return browser
	}
	return browser + " on " + system
}

func known(names [][2]string, agent string) string {
	for _, n := range names {
		if strings.Contains(agent, n[0]) {
			return n[1]
		}
	}
	return ""
}

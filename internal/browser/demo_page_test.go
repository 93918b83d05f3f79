package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A screen is what somebody has, and the colours that he likes.
type screen struct {
	name          string
	width, height int64
	scheme        string
}

// openDemo shows a visitor the demo. In the end its page must have needed no other host, and have
// had no error.
func openDemo(t *testing.T, page string, on screen) *tab {
	t.Helper()
	b := newVisitor(t)
	var mu sync.Mutex
	var complaints []string // guarded by mu
	err := chromedp.Listen(b.ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" {
				complaints = append(complaints, fmt.Sprint(e.Args))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(on.width, on.height), prefers(on.scheme))
	b.open(page)
	t.Cleanup(func() {
		for _, loaded := range js[[]string](b, `performance.getEntriesByType('resource').map(e => e.name)`) {
			if !strings.HasPrefix(loaded, page) && !strings.HasPrefix(loaded, "data:") {
				t.Errorf("the page loaded %s", loaded)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(complaints) > 0 {
			t.Errorf("the page has errors: %v", complaints)
		}
	})
	return b
}

func text(b *tab, selector string) string {
	b.t.Helper()
	return strings.TrimSpace(js[string](b, "document.querySelector('"+selector+"').textContent"))
}

// prefers makes the browser say which colours its user likes.
func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// fire presses the button and waits for the result.
func (b *tab) fire() {
	b.t.Helper()
	b.click("#fire")
	b.shows(`body[data-run="done"]`)
}

// TestThePageShowsBothWays presses the button and reads what a person would.
func TestThePageShowsBothWays(t *testing.T) {
	for _, screen := range []screen{{"desktop-light", 1200, 900, "light"}, {"phone-dark", 375, 800, "dark"}} {
		t.Run(screen.name, func(t *testing.T) {
			b := openDemo(t, demotest.Start(t).URL, screen)
			b.fire()
			b.fits(screen.name)

			none, err := strconv.Atoi(text(b, "#none [data-kept]"))
			if err != nil || none >= 100 {
				t.Errorf("without the lock the page shows %d of 100 (%v): nothing was lost", none, err)
			}
			if kept, lost := text(b, "#lock [data-kept]"), text(b, "#lock [data-lost]"); kept != "100" || lost != "none" {
				t.Errorf("with the lock the page shows %q of 100, and %q as lost", kept, lost)
			}
			named := strings.Count(text(b, "#none [data-lost]"), "p")
			marked := js[int](b, `document.querySelectorAll('#none .cell[data-state=lost]').length`)
			if named != 100-none || marked != 100-none {
				t.Errorf("%d were lost; the page names %d and marks %d", 100-none, named, marked)
			}
			if n := js[int](b, `document.querySelectorAll('.cell').length`); n != 200 {
				t.Errorf("%d cells, want 200", n)
			}
		})
	}
}

// TestTheSessionCard counts, logs in and logs out.
func TestTheSessionCard(t *testing.T) {
	b := openDemo(t, demotest.Start(t).URL, laptopScreen)
	for _, step := range []struct{ button, count string }{
		{"#incr", "1"}, {"#incr", "2"}, {"#login", "2"}, {"#incr", "3"}, {"#logout", "0"}, {"#incr", "1"},
	} {
		b.do(chromedp.Click(chromedp.CSS(step.button)))
		shown := `document.querySelector('#count').textContent.trim() === '` + step.count + `'`
		if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](shown)); err != nil {
			t.Fatalf("after %s: the page shows %q, want %q (%v)", step.button, text(b, "#count"), step.count, err)
		}
	}
}

// fits checks that the page is not wider than the screen, and keeps a screenshot for people to look
// at, with go test -artifacts.
func (b *tab) fits(name string) {
	b.t.Helper()
	if over := js[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.t.Errorf("%s: the page is %d pixels wider than the screen", name, over)
	}
	shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), shot, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}

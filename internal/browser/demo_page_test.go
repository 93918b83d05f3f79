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
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A browser is one window, and what went wrong in its page.
type browser struct {
	context.Context
	mu         sync.Mutex // guards complaints
	complaints []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{Context: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" {
				b.complaints = append(b.complaints, fmt.Sprint(e.Args))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// do fails the test unless all steps succeed.
func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		t.Fatal(err)
	}
}

// eval returns what the page answers to a line of JavaScript.
func eval[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func text(t *testing.T, b *browser, selector string) string {
	t.Helper()
	return strings.TrimSpace(eval[string](t, b, "document.querySelector('"+selector+"').textContent"))
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

// TestThePageShowsBothWays presses the button and reads what a person would.
func TestThePageShowsBothWays(t *testing.T) {
	for _, screen := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"desktop-light", 1200, 900, "light"}, {"phone-dark", 375, 800, "dark"}} {
		t.Run(screen.name, func(t *testing.T) {
			page := demotest.Start(t).URL
			b := openBrowser(t)
			b.do(t,
				chromedp.EmulateViewport(screen.width, screen.height),
				prefers(screen.scheme),
				chromedp.Navigate(page),
				chromedp.Click(chromedp.CSS("#fire")),
				chromedp.WaitVisible(chromedp.CSS(`body[data-run="done"]`)),
			)
			save(t, b, screen.name)

			none, err := strconv.Atoi(text(t, b, "#none [data-kept]"))
			if err != nil || none >= 100 {
				t.Errorf("without the lock the page shows %d of 100 (%v): nothing was lost", none, err)
			}
			if kept, lost := text(t, b, "#lock [data-kept]"), text(t, b, "#lock [data-lost]"); kept != "100" || lost != "none" {
				t.Errorf("with the lock the page shows %q of 100, and %q as lost", kept, lost)
			}
			named := strings.Count(text(t, b, "#none [data-lost]"), "p")
			marked := eval[int](t, b, `document.querySelectorAll('#none .cell[data-state=lost]').length`)
			if named != 100-none || marked != 100-none {
				t.Errorf("%d were lost; the page names %d and marks %d", 100-none, named, marked)
			}
			if n := eval[int](t, b, `document.querySelectorAll('.cell').length`); n != 200 {
				t.Errorf("%d cells, want 200", n)
			}
			if width := eval[int64](t, b, `document.documentElement.scrollWidth`); width > screen.width {
				t.Errorf("the page is %d pixels wide on a screen of %d", width, screen.width)
			}
			b.check(t, page)
		})
	}
}

// TestTheSessionCard counts, logs in and logs out.
func TestTheSessionCard(t *testing.T) {
	page := demotest.Start(t).URL
	b := openBrowser(t)
	b.do(t, chromedp.Navigate(page))
	for _, step := range []struct{ button, count string }{
		{"#incr", "1"}, {"#incr", "2"}, {"#login", "2"}, {"#incr", "3"}, {"#logout", "0"}, {"#incr", "1"},
	} {
		b.do(t, chromedp.Click(chromedp.CSS(step.button)))
		shown := `document.querySelector('#count').textContent.trim() === '` + step.count + `'`
		if _, err := chromedp.Run(b, chromedp.Poll[bool](shown)); err != nil {
			t.Fatalf("after %s: the page shows %q, want %q (%v)", step.button, text(t, b, "#count"), step.count, err)
		}
	}
	b.check(t, page)
}

// check fails the test if the page needed another host, or had an error.
func (b *browser) check(t *testing.T, page string) {
	t.Helper()
	for _, loaded := range eval[[]string](t, b, `performance.getEntriesByType('resource').map(e => e.name)`) {
		if !strings.HasPrefix(loaded, page) && !strings.HasPrefix(loaded, "data:") {
			t.Errorf("the page loaded %s", loaded)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		t.Errorf("the page has errors: %v", b.complaints)
	}
}

// save keeps a screenshot for people to look at, with go test -artifacts.
func save(t *testing.T, b *browser, name string) {
	t.Helper()
	shot, err := chromedp.Run(b, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), shot, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

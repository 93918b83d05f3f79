package browser

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// firefox is Firefox, driven by the protocol of the W3C, WebDriver BiDi.
type firefox struct{ *bidi }

// startFirefox starts it; end ends it.
func startFirefox(profile string) (b browser, end func(), err error) {
	path, err := findFirefox()
	if err != nil {
		return nil, nil, err
	}
	process, err := subprocess.Start(exec.Command(path,
		"--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"))
	if err != nil {
		return nil, nil, err
	}
	var at []string
	err = process.Await(func() bool {
		at = listening.FindStringSubmatch(process.Log())
		return at != nil
	})
	if err != nil {
		process.Kill()
		return nil, nil, err
	}
	conn, err := dialBiDi(at[1] + "/session")
	end = func() {
		if conn != nil {
			_ = conn.call("browser.close", args{}, nil)
		}
		select {
		case <-process.Done():
		case <-time.After(patience):
		}
		process.Kill()
	}
	if err == nil {
		always := args{"acceptInsecureCerts": true} // httptest's certificates
		err = conn.call("session.new", args{"capabilities": args{"alwaysMatch": always}}, nil)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return firefox{conn}, end, nil
}

var listening = regexp.MustCompile(`WebDriver BiDi listening on (\S+)`)

func findFirefox() (path string, err error) {
	for _, name := range []string{"firefox-esr", "firefox"} {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	return path, err
}

func (f firefox) visitor(t *testing.T) (driver, error) {
	var user struct{ UserContext string }
	if err := f.call("browser.createUserContext", args{}, &user); err != nil {
		return nil, err
	}
	t.Cleanup(func() { // also closes the visitor's windows
		if err := f.call("browser.removeUserContext", args{"userContext": user.UserContext}, nil); err != nil {
			t.Error(err)
		}
	})
	return f.open(user.UserContext)
}

func (f firefox) open(user string) (driver, error) {
	var window struct{ Context string }
	err := f.call("browsingContext.create", args{"type": "window", "userContext": user}, &window)
	return firefoxTab{f, user, window.Context}, err
}

type firefoxTab struct {
	firefox
	user, id string // the protocol calls both contexts
}

func (f firefoxTab) window(*testing.T) (driver, error) { return f.open(f.user) }

// on calls a method for this tab.
func (f firefoxTab) on(method string, params args, result any) error {
	params["context"] = f.id
	return f.call(method, params, result)
}

func (f firefoxTab) load(url string) error {
	return f.on("browsingContext.navigate", args{"url": url, "wait": "complete"}, nil)
}

func (f firefoxTab) mouse(pause time.Duration, at ...point) error {
	var actions []args
	for i, p := range at {
		if i > 0 {
			actions = append(actions, args{"type": "pause", "duration": pause.Milliseconds()})
		}
		actions = append(actions,
			args{"type": "pointerMove", "x": int(p.X), "y": int(p.Y)},
			args{"type": "pointerDown", "button": 0},
			args{"type": "pointerUp", "button": 0})
	}
	pointer := args{"type": "pointer", "id": "mouse", "actions": actions}
	err := f.on("input.performActions", args{"actions": []args{pointer}}, nil)
	if err != nil && len(at) > 1 && strings.Contains(err.Error(), "NS_ERROR_FAILURE") {
		// The page was left between two clicks, so the later click has reached no page.
		return f.on("input.releaseActions", args{}, nil)
	}
	return err
}

func (f firefoxTab) eval(script string) (string, error) {
	var evaluated struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	err := f.call("script.evaluate", args{
		"expression": script, "awaitPromise": true, "target": args{"context": f.id},
	}, &evaluated)
	if err == nil && evaluated.ExceptionDetails != nil {
		err = errors.New(evaluated.ExceptionDetails.Text)
	}
	return evaluated.Result.Value, err
}

// cookies leaves out expired cookies: Firefox does not send them, but keeps them in memory, and lists them.
func (f firefoxTab) cookies() (found []cookie, err error) {
	var got struct {
		Cookies []struct {
			Name   string
			Value  struct{ Value string }
			Expiry *int64 // in seconds since 1970; nil: ends with the browser
		}
	}
	its := args{"type": "context", "context": f.id}
	err = f.call("storage.getCookies", args{"partition": its}, &got)
	now := time.Now().Unix()
	for _, c := range got.Cookies {
		if c.Expiry == nil || *c.Expiry > now {
			found = append(found, cookie{c.Name, c.Value.Value, c.Expiry != nil})
		}
	}
	return found, err
}

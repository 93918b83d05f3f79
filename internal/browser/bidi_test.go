package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// A bidi is a connection for WebDriver BiDi calls to a browser. Many calls may be under way at once.
type bidi struct {
	conn *websocket.Conn

	mu      sync.Mutex
	calls   int                  // so far; guarded by mu
	waiting map[int]chan<- reply // for the replies to calls; guarded by mu; nil after the connection has ended
}

// args are the arguments of a call, or a part of them.
type args map[string]any

type reply struct {
	ID             int
	Result         json.RawMessage
	Error, Message string
}

func dialBiDi(url string) (*bidi, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1)
	b := &bidi{conn: conn, waiting: map[int]chan<- reply{}}
	go b.read()
	return b, nil
}

// read passes replies on until the connection ends.
func (b *bidi) read() {
	for {
		var r reply
		err := wsjson.Read(context.Background(), b.conn, &r)
		b.mu.Lock()
		if err != nil {
			for _, waiting := range b.waiting {
				close(waiting)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		if waiting := b.waiting[r.ID]; waiting != nil { // an event has no ID
			waiting <- r
			delete(b.waiting, r.ID)
		}
		b.mu.Unlock()
	}
}

// call calls a method, waits for its reply, and decodes that into result, unless result is nil.
func (b *bidi) call(method string, params args, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	replies := make(chan reply, 1)
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return errHungUp
	}
	b.calls++
	id := b.calls
	b.waiting[id] = replies
	b.mu.Unlock()
	if err := wsjson.Write(ctx, b.conn, args{"id": id, "method": method, "params": params}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case r, ok := <-replies:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, errHungUp)
		case r.Error != "":
			return fmt.Errorf("%s: %s: %s", method, r.Error, r.Message)
		case result != nil:
			return json.Unmarshal(r.Result, result)
		}
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		delete(b.waiting, id)
		b.mu.Unlock()
		return fmt.Errorf("%s: no reply: %w", method, ctx.Err())
	}
}

var errHungUp = errors.New("the browser has ended the connection")

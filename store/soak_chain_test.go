//go:build soak

package store

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// memory is how many of its last writes a session remembers.
const memory = 64

// A chain is what is known about the writes to one session. The session itself has
// the number of its writes, and the marks of the last of them. So an answered write
// that is not in it, or not in its place, is found in all that is read after it.
type chain struct {
	mu       sync.Mutex // guards all below
	last     int        // the last answered write
	answered map[int]string
	total    int // of the answered writes
	doubtful int // writes that failed, so that nobody knows
}

// link is the content of a session.
type link struct {
	n     int
	marks []string // of the last writes, the newest last
}

func parseLink(data []byte) (l link, err error) {
	number, rest, _ := strings.Cut(string(data), " ")
	l.n, err = strconv.Atoi(number)
	l.marks = strings.Fields(rest)
	return l, err
}

// add returns the content after one write more.
func (l link) add(mark string) link {
	marks := append(l.marks[:len(l.marks):len(l.marks)], mark)
	return link{l.n + 1, marks[max(0, len(marks)-memory):]}
}

// bytes returns the stored form. One in eight is so large that the record is staged, and one in a
// hundred and twenty-eight is far larger than that.
func (l link) bytes() []byte {
	text := strconv.Itoa(l.n) + " " + strings.Join(l.marks, " ")
	switch {
	case l.n%128 == 0:
		text += strings.Repeat(" ", 20*stagedFrom)
	case l.n%8 == 0:
		text += strings.Repeat(" ", stagedFrom)
	}
	return []byte(text)
}

// floor is the least number that whoever begins now may read.
func (c *chain) floor() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// answer notes that a write was answered with success.
func (c *chain) answer(l link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark := l.marks[len(l.marks)-1]
	if other, ok := c.answered[l.n]; ok {
		return fmt.Errorf("write %d was answered twice: to %s and to %s", l.n, other, mark)
	}
	if c.answered == nil {
		c.answered = make(map[int]string)
	}
	c.answered[l.n] = mark
	c.total++
	c.last = max(c.last, l.n)
	delete(c.answered, l.n-4*memory) // so that this does not grow
	return nil
}

// doubt notes that a write failed.
func (c *chain) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubtful++
}

// sum checks what was read while nobody writes: each answered write is in it once,
// and nothing else that nobody doubts.
func (c *chain) sum(l link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.n < c.total || l.n > c.total+c.doubtful {
		return fmt.Errorf("%d writes were answered and %d failed, but there are %d", c.total, c.doubtful, l.n)
	}
	return nil
}

// check checks what was read by a request that began when the floor was this.
func (c *chain) check(l link, floor int) error {
	if l.n < floor {
		return fmt.Errorf("write %d was answered, but then %d was read", floor, l.n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, mark := range l.marks {
		n := l.n - len(l.marks) + 1 + i
		if want, ok := c.answered[n]; ok && want != mark {
			return fmt.Errorf("write %d was answered to %s, but %s is in its place", n, want, mark)
		}
	}
	return nil
}

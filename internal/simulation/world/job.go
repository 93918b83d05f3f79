package world

import (
	"context"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// update changes a session by Sessions.Update. Its result is the response.
func (c *call) update(ctx context.Context, id string, answer *response) {
	c.failure = c.process.sessions.Update(ctx, id, func(s *session.Session) error {
		c.session = s
		c.runs++
		c.look()
		c.work(ctx, c.Before)
		c.change()
		c.sealing()
		return nil
	})
	status := http.StatusOK
	if c.failure != nil {
		status = middleware.Status(c.failure)
	}
	answer.WriteHeader(status)
}

package overlay

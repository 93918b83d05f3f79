package rig

import "github.com/a2139e8d/latchkey/internal/overlay"

// An Edit changes a file of Latchkey's, or of Go's.
type Edit = overlay.Edit

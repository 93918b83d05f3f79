package rig

import "github.com/a2139e8d/latchkey/testdata/overlay"

// An Edit changes a file of Latchkey's, or of Go's.
type Edit = overlay.Edit

// Package messages embeds the SOAP messages of this folder, for the tour, which must run without
// the checkout.
package messages

import "embed"

// Files has the messages under their file names.
//
//go:embed *.xml
var Files embed.FS

package demo

import (
	"time"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/peer"
)

// SetService replaces the echo service.
func (c *Config) SetService(s peer.Service) { c.service = s }

func Sample(list []TourMessage) []TourMessage { return sample(list) }

func BreakEven(soap, way []time.Duration) int { return breakEven(soap, way) }

func Found(sent []TourMessage, messages []*capture.Decoded) int { return found(sent, messages, 0) }

func Changed(m TourMessage) TourMessage { return changed(m) }

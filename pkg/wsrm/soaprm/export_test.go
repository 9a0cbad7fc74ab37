package soaprm

var ParseDuration, FormatDuration = parseDuration, formatDuration

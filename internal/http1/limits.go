package http1

// DefaultHeadLimit is the longest head in bytes if the caller sets none: four times the limit of
// common servers, since SOAP heads carry tokens.
const DefaultHeadLimit = 64 << 10

// MaxFields bounds the fields of one head; no real head comes near.
const MaxFields = 1024

// fewFields is the number of fields that there is space for without growing: most heads have fewer.
const fewFields = 8

// maxChunkLine bounds a chunk-size line with its extensions, in bytes.
const maxChunkLine = 4 << 10

// maxTrailer bounds a trailer section, in bytes.
const maxTrailer = DefaultHeadLimit

// maxTokens bounds the transfer codings of one message.
const maxTokens = 16

// maxRecordedFraming bounds what [Body] records of a message's framing, in bytes; beyond it the
// recording is abandoned.
const maxRecordedFraming = 1 << 20

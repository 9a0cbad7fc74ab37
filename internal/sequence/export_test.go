package sequence

// Encode and Decode are the form of messages in engines and stores.
var (
	Encode = encode
	Decode = decode
)

// Window is how many messages may be accepted and not done.
const Window = window

package replay

// Wait is what [Recording.Run] waits before each request.
var Wait = (*RunConfig).wait

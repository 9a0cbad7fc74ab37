package load

// Doubt is why a row does not count.
var Doubt = doubt

// Package inspector stores the messages of a capture while somebody looks at them, and makes lines
// of them: as a document, a tree, bytes, or two beside each other.
//
// Memory does not grow with the length of bodies: messages are compressed in blocks, in a private
// file. Per message there are some bytes.
package inspector

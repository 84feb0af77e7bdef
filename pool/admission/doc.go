// Package admission decides which incarnation a server is in and whether the server is fit
// to be a master. It works on one connection and keeps no state.
//
// Files in reading order:
//   - identity.go: the text on a master that names its incarnation;
//   - probe.go: what a server reports, and whether it is fit;
//   - admit.go, admit.lua: the script that finds or begins the incarnation;
//   - end.go, end.lua: the script that ends it.
package admission

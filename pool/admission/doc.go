// Package admission decides which incarnation a server is in and whether the server is fit
// to be a master. It works on one connection and keeps no state.
//
// Files in reading order:
//   - identity.go: the text on a master that names its incarnation;
//   - configuration.go, survey.go: the group's masters and limits, and what masters carry of them;
//   - daemons.go: the daemons that use a master, and their epochs;
//   - probe.go: what a server reports, and whether it is fit;
//   - admit.go, admit.lua, end.lua: the scripts that find, begin or end the incarnation.
package admission

// Package setup has what operators run before or beside the daemons of a group of masters:
// checks of the servers, the first start, other settings, the end of a master's memory. The
// daemon calls it for subcommands and at its start, never while it serves clients.
//
// Files in reading order:
//   - group.go: the masters that a subcommand works on;
//   - links.go: connections that end with the subcommand and show what it waits for;
//   - check.go: whether servers are fit to be masters;
//   - acl.go: the commands that the daemon's user needs on a master;
//   - performance.go: how long writes take, and which master timeout fits;
//   - bootstrap.go, marks.go: a group of blank masters votes at once;
//   - aged.go: one blank master begins where no daemon begins with it;
//   - rename.go, rename.lua: other masters, while the daemons serve; requirements.go: what must be there before;
//     rivals.go: several changes at once; followers.go: which daemons use the new list;
//   - carry.go, carry.lua, share.go: what new masters are given of ids and work;
//   - moves.go, side.go, slotchange.go: slots go to another group, while the daemons serve; showslots.go, slots.go: the map;
//   - settings.go: what a fingerprint on a master shows;
//   - reconfigure.go, reconfigure.lua: other limits or versions, and other masters by force;
//   - masters.go: the list after masters join or leave, for both of them;
//   - quarantine.go: a master's memory begins anew.
package setup

// Package access decides who a client is and what it may do: users, passwords,
// permissions, quotas and the limits of failed logins. It knows no command and no reply.
//
// Reading order:
//   - users.go: users, and what they may run and name;
//   - login.go, loginlimit.go, argon2id.go: passwords, and how often they are checked;
//   - signedin.go: the connections of a user;
//   - account.go, quota.go: what a user has used up, and may have at once.
package access

#!/usr/bin/env bash
# The story told through one redis-cli that reads commands from a pipe, as it
# does from a terminal: it asks COMMAND DOCS first, and dies of a malformed one.
# $1 is the protocol, or cluster.
set -u
host=${REDLOCKD_ADDR%:*} port=${REDLOCKD_ADDR##*:} key=$REDLOCKD_KEY
options=(--no-raw)
[ "$1" = 2 ] || options+=(-3)
[ "$1" = cluster ] && options+=(-c)
die() { echo "fail $(tr '\n' ' ' <<<"$1")"; exit 1; }
echo "library $(redis-cli --version | cut -d' ' -f2)"

coproc CLI { exec redis-cli -h "$host" -p "$port" "${options[@]}" 2>&1; }
cli_pid=$CLI_PID

# ask COMMAND: its reply as redis-cli writes it, in $reply. The echo behind it
# shows where it ends.
count=0
ask() {
	local line
	count=$((count + 1)) reply=
	printf '%s\nECHO end-%s\n' "$1" "$count" >&"${CLI[1]}"
	while IFS= read -r -t 20 line <&"${CLI[0]}"; do
		if [ "$line" = "\"end-$count\"" ]; then reply=${reply%$'\n'}; return; fi
		reply+=$line$'\n'
	done
	die "$step $1: no answer but $reply"
}
# expect COMMAND PATTERN: a regular expression for the whole reply.
expect() {
	ask "$1"
	[[ $reply =~ ^$2$ ]] || die "$step $1: got $reply, wanted $2"
}
ok() { echo "ok $step"; }
grant='1\) "([A-Za-z0-9_-]{27})"'$'\n''2\) \(integer\) ([0-9]+)'$'\n''3\) \(integer\) ([0-9]+)'

step=connect; expect 'ECHO hello' '"hello"'; ok
step=ping; expect PING PONG; ok
ask 'CLIENT INFO'; [[ $reply =~ resp=([23]) ]] || die "protocol: $reply"
echo "protocol ${BASH_REMATCH[1]}"

step=password
if [ -n "${REDLOCKD_PASSWORD:-}" ]; then
	there=(-h "${REDLOCKD_PASSWORD_ADDR%:*}" -p "${REDLOCKD_PASSWORD_ADDR##*:}" "${options[@]}" --no-auth-warning)
	[ "$(redis-cli "${there[@]}" -a "$REDLOCKD_PASSWORD" PING 2>&1)" = PONG ] || die "password: the right one is refused"
	[[ $(redis-cli "${there[@]}" -a wrong PING 2>&1) == *WRONGPASS*NOAUTH* ]] || die "password: a wrong one is not refused"
	ok
else
	echo "skip password the daemon has none"
fi

step=dlock; expect "DLOCK $key 30000" "$grant"
token=${BASH_REMATCH[1]} fence=${BASH_REMATCH[3]}
[ "${BASH_REMATCH[2]}" -gt 0 ] && [ "${BASH_REMATCH[2]}" -le 30000 ] || die "dlock validity $reply"
ok
step=taken; expect "DLOCK $key 30000" '\(nil\)'; ok
step=dunlock; expect "DUNLOCK $key not-the-token" '\(integer\) 0'; expect "DUNLOCK $key $token" '\(integer\) 1'; ok
step=dextend; expect "DLOCK $key 20000" "$grant"
token=${BASH_REMATCH[1]}
[ "${BASH_REMATCH[3]}" -gt "$fence" ] || die "dextend the fence does not rise: $fence, ${BASH_REMATCH[3]}"
expect "DEXTEND $key $token 40000" '\(integer\) ([0-9]+)'
[ "${BASH_REMATCH[1]}" -gt 30000 ] || die "dextend validity $reply"
expect "DEXTEND $key not-the-token 40000" '\(nil\)'; expect "DUNLOCK $key $token" '\(integer\) 1'; ok
step=dnextid; expect "DNEXTID $key" '\(integer\) ([0-9]+)'; first=${BASH_REMATCH[1]}
expect "DNEXTID $key" '\(integer\) ([0-9]+)'; [ "${BASH_REMATCH[1]}" -gt "$first" ] || die "dnextid $first, then $reply"; ok
step=error; expect "DLOCK $key 5" '\(error\) ERR .*ttl.*'; expect PING PONG; ok

# redis-cli sends a pipeline only with --pipe, which counts errors and replies.
step=pipeline
sent=$(for i in $(seq 100); do printf 'DLOCK %s:%s 30000 TOKEN interop-token\r\n' "$key" "$i"; done |
	redis-cli -h "$host" -p "$port" --pipe 2>&1)
[[ $sent == *"errors: 0, replies: 100"* ]] || die "pipeline $sent"
for i in 1 50 100; do expect "DUNLOCK $key:$i interop-token" '\(integer\) 1'; done; ok

# What redis-cli shows for a word it knows from COMMAND DOCS alone.
step=hints; ask 'HELP DLOCK'; [[ $reply == *DLOCK*"key ttl"*summary:* ]] || die "hints $reply"; ok

step=dmlock; expect "DMLOCK 30000 2 $key:a $key:b" "$grant"
expect "DMUNLOCK ${BASH_REMATCH[1]} 2 $key:a $key:b" '\(integer\) 2'; ok

step=wait; expect "DLOCK $key 100" "$grant"; expect "DLOCK $key 30000 WAIT 20000" "$grant"$'\n''(\([0-9.]+s\))?'
expect "DUNLOCK $key ${BASH_REMATCH[1]}" '\(integer\) 1'; ok

# redis-cli -c knows no other daemon either: it follows redirections, and there are none.
step=reconnect; echo "wait restart"; read -r _
for _ in $(seq 100); do ask PING; [[ $reply == *PONG ]] && break; sleep 0.05; done
expect "DLOCK $key 30000" "$grant"; expect "DUNLOCK $key ${BASH_REMATCH[1]}" '\(integer\) 1'; ok

step=close
echo 'QUIT' >&"${CLI[1]}"
wait "$cli_pid" || die "close redis-cli ended with $?"
echo "wait gone"; read -r _
ok

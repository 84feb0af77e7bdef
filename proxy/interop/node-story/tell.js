// The story, told through a client that the program describes:
//
//   connect()            the library's client, connected with its defaults
//   guarded(password)    the same for the daemon that wants a password
//   ping()               PONG
//   do(client, ...args)  any command; rejects with the library's error
//   pipeline(commands)   the replies of many commands sent together
//   lost(error)          is it an error of the connection?
//   close()              as the library wants it done
'use strict';
const readline = require('node:readline');

const [host, port] = process.env.REDLOCKD_ADDR.split(':');
const key = process.env.REDLOCKD_KEY;
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const say = (...words) => process.stdout.write(words.join(' ') + '\n');
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function check(holds, why) {
  if (!holds) throw new Error(why);
}

function same(got, wanted) {
  check(JSON.stringify(got) === JSON.stringify(wanted), `got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);
}

async function wait(what) {
  say('wait', what);
  same((await lines.next()).value, what);
}

// grant is { token, validity, fence } of a reply to DLOCK.
function grant(reply, ttl) {
  check(Array.isArray(reply) && reply.length === 3, `a grant has three elements: ${JSON.stringify(reply)}`);
  const [token, validity, fence] = reply;
  check(typeof token === 'string' && token.length === 27, `token ${token}`);
  check(Number.isInteger(validity) && validity > 0 && validity <= ttl, `validity ${validity}`);
  check(Number.isSafeInteger(fence) && fence > 2 ** 50, `fence ${fence}`);
  return { token, validity, fence };
}

async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('there is no error');
}

function story(library) {
  let client, held;
  const ask = (...args) => library.do(client, ...args.map(String));
  const hundred = (word, ...rest) =>
    library.pipeline(client, Array.from({ length: 100 }, (_, i) => [word, `${key}:${i}`, ...rest]));
  return {
    async connect() {
      client = await library.connect(host, Number(port));
      same(await ask('ECHO', 'hello'), 'hello');
    },
    async ping() {
      same(await ask('PING'), 'PONG');
      say('protocol', /resp=(\d)/.exec(await ask('CLIENT', 'INFO'))[1]);
    },
    async password() {
      if (!process.env.REDLOCKD_PASSWORD) {
        say('skip password the daemon has none');
        return false;
      }
      const there = process.env.REDLOCKD_PASSWORD_ADDR.split(':');
      const right = await library.connect(there[0], Number(there[1]), process.env.REDLOCKD_PASSWORD);
      same(await right.ping(), 'PONG');
      await library.close(right);
      const error = await rejection(library.refused(there[0], Number(there[1]), 'wrong'));
      check(/WRONGPASS|NOAUTH/.test(String(error)), `a wrong password gives ${error}`);
    },
    async dlock() {
      held = grant(await ask('DLOCK', key, 30000), 30000);
    },
    async taken() {
      same(await ask('DLOCK', key, 30000), null);
    },
    async dunlock() {
      same(await ask('DUNLOCK', key, 'not-the-token'), 0);
      same(await ask('DUNLOCK', key, held.token), 1);
    },
    async dextend() {
      const later = grant(await ask('DLOCK', key, 20000), 20000);
      check(later.fence > held.fence, `the fence does not rise: ${held.fence}, ${later.fence}`);
      const validity = await ask('DEXTEND', key, later.token, 40000);
      check(validity > 30000 && validity <= 40000, `validity ${validity}`);
      same(await ask('DEXTEND', key, 'not-the-token', 40000), null);
      same(await ask('DUNLOCK', key, later.token), 1);
    },
    async dnextid() {
      const first = await ask('DNEXTID', key);
      const second = await ask('DNEXTID', key);
      check(first > 0 && second > first, `${first}, then ${second}`);
    },
    async error() {
      const error = await rejection(ask('DLOCK', key, 5));
      check(/^ERR ttl/.test(error.message), `error ${error}`);
      same(await ask('PING'), 'PONG');
    },
    async pipeline() {
      const grants = await hundred('DLOCK', '30000', 'TOKEN', 'interop-token');
      same(grants.map((g) => g[0]), Array(100).fill('interop-token'));
      same(await hundred('DUNLOCK', 'interop-token'), Array(100).fill(1));
    },
    async dmlock() {
      const keys = [`${key}:a`, `${key}:b`];
      const both = grant(await ask('DMLOCK', 30000, 2, ...keys), 30000);
      same(await ask('DMUNLOCK', both.token, 2, ...keys), 2);
    },
    async wait() {
      grant(await ask('DLOCK', key, 100), 100);
      const next = grant(await ask('DLOCK', key, 30000, 'WAIT', 20000), 30000);
      same(await ask('DUNLOCK', key, next.token), 1);
    },
    async reconnect() {
      await wait(process.env.REDLOCKD_OUTAGE ?? 'restart');
      for (let i = 0; i < 200; i++) {
        try {
          await this.pipeline();
          break;
        } catch {
          await pause(50);
        }
      }
      const again = grant(await ask('DLOCK', key, 30000), 30000);
      same(await ask('DUNLOCK', key, again.token), 1);
    },
    async close() {
      await library.close(client);
      await wait('gone');
    },
  };
}

// roll locks with four tasks and one client, until the driver says so.
async function roll(library) {
  const client = await library.connect(host, Number(port));
  const r = { pairs: 0, waits: 0, refused: 0, failed: 0, why: [] };
  let over = false;
  say('ready');
  lines.next().then(() => (over = true));
  const ask = (...args) => library.do(client, ...args);
  // A wait that is refused is repeated until it is granted.
  async function pair(i, waits) {
    const token = `rolling-${key}-${i}`;
    const name = waits ? `${key}:w` : `${key}:${i}`; // the driver takes the first, too
    const lock = ['DLOCK', name, '10000', 'TOKEN', token, ...(waits ? ['WAIT', '2000'] : [])];
    if (waits) r.waits++;
    for (let tries = 0, end = Date.now() + 30000; ; tries++) {
      try {
        if ((await ask(...lock)) === null) throw new Error('DLOCK: nil');
        break;
      } catch (error) {
        if (!waits || !/SHUTDOWN/.test(String(error)) || Date.now() > end) throw error;
        if (tries === 0) r.refused++;
        await pause(50);
      }
    }
    await ask('DUNLOCK', name, token);
  }
  await Promise.all([0, 1, 2, 3].map(async (i) => {
    for (let n = 0; !over; n++) {
      await pause(20);
      try {
        await pair(i, i === 0 && n % 3 === 0);
      } catch (error) {
        r.failed++;
        if (r.why.length < 3) r.why.push(String(error).replaceAll('\n', ' '));
      }
      r.pairs++;
    }
  }));
  for (const text of r.why) say('failure', text);
  say('rolled', r.pairs, r.waits, r.refused, r.failed);
  process.exit(0);
}

// tell plays all steps and ends the process with an error at the first that fails.
module.exports = async function tell(library) {
  say('library', library.version);
  if (process.env.REDLOCKD_ROLLING) return roll(library);
  const steps = story(library);
  for (const step of Object.keys(steps)) {
    try {
      if ((await steps[step]()) !== false) say('ok', step);
    } catch (error) {
      say('fail', step, String(error).replaceAll('\n', ' '));
      process.exit(1);
    }
  }
  lines.return?.();
  process.stdin.destroy();
};

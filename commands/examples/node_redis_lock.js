// A lock for `await using`, with node-redis. Copy this file. Run: node node_redis_lock.js 127.0.0.1:7379
//
//   await using held = await lock('invoice:7', { url: 'redis://127.0.0.1:7379' });
//   await db.query(update, [held.fence], { signal: held.signal });
//   held.check();
//
// Before Node 24: try { … } finally { await held[Symbol.asyncDispose](); }
const { createClient, ErrorReply } = require('redis');

class LockTaken extends Error {} // another client still holds the lock
class LockLost extends Error {} // the lock was lost, or its validity is over: the work must stop

// lock holds a lock until its disposal, for at most `longest`. Times are in milliseconds; connection has the options of
// createClient. The work gives held.fence to the resource and ends with held.signal. held.check() throws LockLost.
async function lock(key, { ttl = 30000, wait = 60000, longest = 600000, ...connection } = {}) {
  // HOLD needs one connection that is never opened anew. Its read timeout is longer than the WAIT.
  const socket = { ...connection.socket, socketTimeout: wait + 10000, reconnectStrategy: false };
  const locks = createClient({ ...connection, socket });
  const lost = new AbortController();
  let until = Infinity, over, renewal, token, end;

  const close = () => {
    clearTimeout(over);
    clearTimeout(renewal);
    if (locks.isOpen) locks.destroy(); // redlockd then releases what may be left of the lock
  };
  const lose = (cause) => {
    until = -Infinity;
    lost.abort(new LockLost(`the lock on ${key} is lost`, { cause }));
    close();
  };
  const check = () => {
    if (performance.now() >= until) lose();
    lost.signal.throwIfAborted();
  };
  const extend = async () => {
    const sent = performance.now(); // the validity counts from here
    const validity = await locks.sendCommand(['DEXTEND', key, token, `${ttl}`]);
    check();
    until = validity === null ? -Infinity : Math.min(sent + validity, end);
    check();
    clearTimeout(over);
    over = setTimeout(lose, until - performance.now());
  };
  const renew = async () => {
    try {
      await extend();
    } catch (error) { // after an error reply, for example NOQUORUM, the next extension may succeed
      if (!(error instanceof ErrorReply)) return lose(error);
    }
    if (locks.isOpen) renewal = setTimeout(renew, ttl / 3);
  };
  const release = async () => {
    clearTimeout(renewal);
    try {
      if (performance.now() < until) await locks.sendCommand(['DUNLOCK', key, token]);
    } catch { // the end of the connection releases the lock
    } finally {
      close();
    }
  };

  locks.on('error', lose); // the connection has ended, and with it the lock
  try {
    await locks.connect();
    const granted = await locks.sendCommand(['DLOCK', key, `${ttl}`, 'WAIT', `${wait}`, 'HOLD', `${longest}`]);
    if (granted === null) throw new LockTaken(`another client still holds the lock on ${key}`);
    token = granted[0];
    end = performance.now() + longest;
    await extend(); // confirms the lock after the WAIT
    renewal = setTimeout(renew, ttl / 3);
    return { fence: granted[2], signal: lost.signal, check, [Symbol.asyncDispose]: release };
  } catch (error) {
    close();
    throw error;
  }
}

module.exports = { lock, LockTaken, LockLost };

async function main() { // a short piece of work, then two that last until the lock is lost
  const { setTimeout: sleep } = require('node:timers/promises');
  for (const duration of [0, 3600000, 3600000]) {
    const held = await lock('invoice:7', { ttl: 10000, wait: 600000, url: `redis://${process.argv[2] ?? '127.0.0.1:7379'}` });
    try {
      console.log(`granted fence ${held.fence}`);
      await sleep(duration, null, { signal: held.signal });
      held.check();
    } catch (error) {
      if (!held.signal.aborted) throw error;
    } finally {
      await held[Symbol.asyncDispose]();
    }
    console.log(held.signal.aborted ? 'lost' : 'released');
  }
}

if (require.main === module) main();

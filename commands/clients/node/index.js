// Locks of redlockd for programs that use node-redis:
//
//   await using held = await lock('invoice:7', { url: 'redis://127.0.0.1:7379' });
//   await db.query(update, [held.fence], { signal: held.signal });
//   held.check();
//
// Before Node 24: try { … } finally { await held[Symbol.asyncDispose](); }
'use strict';
const { createClient, ErrorReply } = require('redis');

const dispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

class LockTaken extends Error {} // another client held the lock during the whole wait
class LockLost extends Error {} // the lock was lost, or its validity is over: the work must stop

async function lock(key, { ttl = 30000, wait = 60000, longest = 600000, ...connection } = {}) {
  // HOLD needs one connection that is never opened anew. Its read timeout is longer than the WAIT.
  const socket = { ...connection.socket, socketTimeout: wait + 10000, reconnectStrategy: false };
  const locks = createClient({ ...connection, socket });
  const lost = new AbortController();
  let until = Infinity, over, renewal, token, end, released = false;

  const close = () => {
    clearTimeout(over);
    clearTimeout(renewal);
    if (locks.isOpen) locks.destroy(); // redlockd then releases what may be left of the lock
  };
  const lose = (cause) => {
    if (released) return;
    until = -Infinity;
    lost.abort(new LockLost(`the lock on ${key} is lost`, { cause }));
    close();
  };
  const check = () => {
    if (performance.now() >= until) lose();
    lost.signal.throwIfAborted();
  };
  const extend = async (time = ttl) => {
    check();
    const sent = performance.now(); // the validity counts from here
    let validity;
    try {
      validity = await locks.sendCommand(['DEXTEND', key, token, `${time}`]);
    } catch (error) { // after an error reply, for example NOQUORUM, the lock is as it was
      if (!(error instanceof ErrorReply)) lose(error); // the connection has ended, and with it the lock
      lost.signal.throwIfAborted();
      throw error;
    }
    check(); // lost stays lost
    until = validity === null ? -Infinity : Math.min(sent + Number(validity), end);
    check();
    clearTimeout(over);
    over = setTimeout(lose, until - performance.now());
    return until - performance.now();
  };
  const renew = async () => {
    try {
      await extend();
    } catch { // the next extension may succeed
    }
    if (locks.isOpen && !released) renewal = setTimeout(renew, ttl / 3);
  };
  const release = async () => {
    clearTimeout(renewal);
    try {
      if (!released && performance.now() < until) {
        released = true;
        await locks.sendCommand(['DUNLOCK', key, token]);
      }
    } catch { // the end of the connection releases the lock
    } finally {
      close();
    }
  };

  locks.on('error', lose); // the connection has ended, and with it the lock
  try {
    await locks.connect();
    const words = wait > 0 ? ['WAIT', `${Math.ceil(wait)}`] : [];
    const granted = await locks.sendCommand(['DLOCK', key, `${ttl}`, ...words, 'HOLD', `${longest}`]);
    if (granted === null) throw new LockTaken(`another client still holds the lock on ${key}`);
    token = granted[0];
    end = performance.now() + longest;
    await extend(); // confirms the lock after the WAIT
    renewal = setTimeout(renew, ttl / 3);
    return { fence: granted[2], signal: lost.signal, check, extend, [dispose]: release };
  } catch (error) {
    close();
    throw error;
  }
}

module.exports = { lock, LockTaken, LockLost };

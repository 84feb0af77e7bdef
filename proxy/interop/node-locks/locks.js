// Lock libraries of Node.js, unmodified, that take the daemon for one Redis.
// Argument: redlock4, redlock5, redlock-universal or redis-semaphore.
'use strict';
const fs = require('fs');
const path = require('path');
const Redis = require('ioredis');
const readline = require('readline');

const [host, port] = process.env.REDLOCKD_ADDR.split(':');
const key = process.env.REDLOCKD_KEY;
const which = process.argv[2];
const client = new Redis({ host, port: Number(port) });
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (...words) => console.log(words.join(' '));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function ask(what) {
  say('wait', what);
  const { value } = await lines.next();
  check(value === what, `the driver did not answer ${what}`);
}

function check(holds, why) {
  if (!holds) throw new Error(why);
}

async function fails(promise) {
  try {
    await promise;
  } catch {
    return true;
  }
  return false;
}

// Each is { take(names, ms) → lock or null, extend(lock) → lock, release(lock) }, and perhaps
// { keep(name, work) } that holds a lock of its own while work lasts.
const libraries = {
  redlock4() {
    const Redlock = require('redlock4');
    const redlock = new Redlock([client], { retryCount: 0 });
    return {
      take: (names, ms) => redlock.lock(names, ms).catch(refused(Redlock.LockError)),
      extend: (lock) => lock.extend(25000),
      release: (lock) => lock.unlock(),
    };
  },
  redlock5() {
    const { default: Redlock, ExecutionError } = require('redlock5');
    const redlock = new Redlock([client], { retryCount: 0 });
    return {
      take: (names, ms) => redlock.acquire(names, ms).catch(refused(ExecutionError)),
      extend: (lock) => lock.extend(25000),
      release: (lock) => lock.release(),
    };
  },
  'redlock-universal'() {
    const universal = require('redlock-universal');
    const adapter = new universal.IoredisAdapter(client);
    const manager = new universal.LockManager({ nodes: [adapter], defaultTTL: 20000, defaultRetryAttempts: 0 });
    const held = (error) => {
      if (error instanceof universal.LockAcquisitionError) return null;
      throw error;
    };
    const each = async (handles, act) => {
      for (const handle of handles) check(await act(manager.createSimpleLock(handle.key), handle), 'it is not held');
      return handles;
    };
    return {
      take: (names, ms) => manager.acquireBatch(names, { ttl: ms }).catch(held),
      extend: (handles) => each(handles, (lock, handle) => lock.extend(handle, 25000)),
      release: (handles) => each(handles, (lock, handle) => lock.release(handle)),
      async keep(name, work) {
        for (const lock of [
          universal.createLock({ adapter, key: name, ttl: 4000, retryAttempts: 0 }),
          universal.createRedlock({ adapters: [adapter], key: name, ttl: 4000, quorum: 1, retryAttempts: 0 }),
        ]) await lock.using(work);
        await manager.usingBatch([name, `${name}2`], work, { ttl: 4000 });
      },
    };
  },
  'redis-semaphore'() {
    const { Mutex } = require('redis-semaphore');
    return {
      async take(names, ms) {
        const mutex = new Mutex(client, names[0], { lockTimeout: ms, refreshInterval: 0, acquireAttemptsLimit: 1 });
        return (await mutex.tryAcquire()) ? mutex : null;
      },
      async extend(mutex) {
        check(await mutex._refresh(), 'it is not extended');
        return mutex;
      },
      async release(mutex) {
        const held = await client.exists(`mutex:${mutex._key.replace(/^mutex:/, '')}`);
        await mutex.release();
        check(held === 1, 'nobody held it');
      },
    };
  },
};

// refused is the library's word for no; everything else goes on as an error.
function refused(type) {
  return (error) => {
    if (error instanceof type) return null;
    throw error;
  };
}

async function story() {
  const library = libraries[which]();
  const several = which.startsWith('redlock');
  const names = (name) => (several ? [`${key}:${name}`, `${key}:${name}2`] : [`${key}:${name}`]);
  const one = (name) => [`${key}:${name}`];
  const kept = async () => { // the work lasts longer than the lease, so the library extends it
    await library.keep?.(`${key}:d`, async (signal) => {
      for (let i = 0; i < 11; i++, await pause(500)) {
        check(!signal.aborted, 'it is lost in mid-work');
        check(!(await library.take(one('d'), 20000)), 'taken twice');
      }
    });
  };
  let lock = await library.take(names('a'), 20000);
  check(lock, 'it is not taken');
  say('ok acquire');
  check(!(await library.take(one('a'), 20000)), 'taken twice');
  say('ok contention');
  lock = await library.extend(lock);
  check(!(await library.take(one('a'), 20000)), 'taken twice');
  await kept();
  say('ok extend');
  await library.release(lock);
  lock = await library.take(one('a'), 20000);
  check(lock, 'it is not released');
  await library.release(lock);
  say('ok release');
  const late = await library.take(one('b'), 1000);
  check(late, 'it is not taken');
  let next = null;
  for (let i = 0; !next && i < 200; i++, await pause(100)) next = await library.take(one('b'), 20000);
  check(next, 'it does not expire');
  await fails(library.release(late)); // an error with some libraries, without effect with all
  check(!(await library.take(one('b'), 20000)), 'a stale release has freed the lock');
  await library.release(next);
  say('ok expiry');
  lock = await library.take(one('c'), 20000);
  await ask('kill');
  check(!(await library.take(one('c'), 20000)), 'taken twice');
  lock = await library.extend(lock);
  await library.release(lock);
  lock = await library.take(one('c'), 20000);
  check(lock, 'it is not taken with a master less');
  await library.release(lock);
  await kept();
  say('ok killed');
  client.disconnect();
  await ask('gone');
  say('ok close');
  process.exit(0);
}

// Some packages let nobody require their package.json.
const described = path.join(process.env.NODE_PATH, which, 'package.json');
say('library', JSON.parse(fs.readFileSync(described, 'utf8')).version.replace(/^v/, ''));
story().catch((error) => {
  console.error(error);
  say('fail', which, String(error).replace(/\n/g, ' '));
  process.exit(1);
});

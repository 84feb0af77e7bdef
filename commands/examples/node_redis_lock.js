// The package redlockd-client for node-redis (commands/clients). Run: node node_redis_lock.js 127.0.0.1:7379
const { setTimeout: sleep } = require('node:timers/promises');
const { lock } = require('redlockd-client');

async function main() { // a short piece of work, then two that last until the lock is lost
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

main();
